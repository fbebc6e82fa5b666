#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/check.h"
#include "run_case.h"
#include "table.h"

// Runs the official ONNX node tests, each in a process of its own so that a crash or a hang is a result like others.
namespace heddle::node_tests {
namespace {

constexpr int kSkipped = 77;  // for CTest: the data is not there

struct Options {
  std::string data, filter, mode = "reference", table;
  int percent = 100;  // of the tests, chosen by seed
  unsigned seed = 1;
  int timeout_s = 60;
  bool verbose = false;
};

std::string read_all(int fd, std::chrono::steady_clock::time_point deadline) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd poller{fd, POLLIN, 0};
    if (left <= 0 || poll(&poller, 1, static_cast<int>(left)) <= 0) break;
    const ssize_t count = read(fd, buffer, sizeof(buffer));
    if (count <= 0) break;
    text.append(buffer, static_cast<size_t>(count));
  }
  return text;
}

[[noreturn]] void child(int fd, const Options& options, const std::string& folder) {
  const Verdict verdict = run_case(options.data, folder, options.mode);
  std::string op = "(unknown)";
  try {
    op = read_case(options.data, folder).op;
  } catch (const std::exception&) {
    // The verdict says what is wrong with the files.
  }
  const std::string message = std::string(1, static_cast<char>(verdict.outcome)) + op + "\n" + verdict.text;
  size_t sent = 0;
  while (sent < message.size()) {
    const ssize_t count = write(fd, message.data() + sent, message.size() - sent);
    if (count <= 0) break;
    sent += static_cast<size_t>(count);
  }
  _exit(0);
}

Row run_isolated(const Options& options, const std::string& folder) {
  Row row{folder, "(unknown)", {}};
  int ends[2];
  if (pipe(ends) != 0) fail(ErrorCode::kFile, "pipe", "it cannot be made");
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) fail(ErrorCode::kOutOfMemory, "fork", "no process can be made");
  if (pid == 0) {
    close(ends[0]);
    child(ends[1], options, folder);
  }
  close(ends[1]);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(options.timeout_s);
  const std::string text = read_all(ends[0], deadline);
  close(ends[0]);
  const bool late = std::chrono::steady_clock::now() >= deadline;
  if (late) kill(pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  const size_t line = text.find('\n');
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && line != std::string::npos) {
    row.op = text.substr(1, line - 1);
    row.verdict = {static_cast<Outcome>(text[0]), text.substr(line + 1)};
  } else if (late) {
    row.verdict.text = fmt::format("no end after {} s", options.timeout_s);
  } else {
    row.verdict.text = WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status)) : "it exited early";
  }
  return row;
}

int run_all(const Options& options) {
  if (!std::filesystem::is_directory(options.data)) {
    fmt::print(stderr, "{} is not there; scripts/fetch_test_data.py fetches it\n", options.data);
    return kSkipped;
  }
  std::vector<Row> rows;
  std::mt19937 rng(options.seed);
  for (const std::string& folder : list_cases(options.data)) {
    const bool chosen = static_cast<int>(rng() % 100) < options.percent;
    if (!chosen || folder.find(options.filter) == std::string::npos) continue;
    rows.push_back(run_isolated(options, folder));
    const Verdict& verdict = rows.back().verdict;
    const bool passed = verdict.outcome == Outcome::kPassed || verdict.outcome == Outcome::kRandom;
    if (!passed || options.verbose) {
      fmt::print("{} {} [{}] {}\n", static_cast<char>(verdict.outcome), folder, rows.back().op, verdict.text);
    }
  }
  std::map<Outcome, int> counts;
  for (const Row& row : rows) ++counts[row.verdict.outcome];
  const int passed = counts[Outcome::kPassed] + counts[Outcome::kRandom];
  const int bad = counts[Outcome::kWrong] + counts[Outcome::kCrashed] + counts[Outcome::kError];
  const auto total = static_cast<int>(rows.size());
  fmt::print(
      "{} tests ({}): {} passed ({:.1f}%), {} of them by type and shape only, {} refused, {} errors, {} wrong, {} "
      "crashed\n",
      total, options.mode, passed, total == 0 ? 0.0 : 100.0 * passed / total, counts[Outcome::kRandom],
      counts[Outcome::kRefused], counts[Outcome::kError], counts[Outcome::kWrong], counts[Outcome::kCrashed]);
  if (!options.table.empty()) std::ofstream(options.table) << operator_table(rows, options.mode);
  return bad == 0 && total > 0 && passed * 100 >= total * 80 ? 0 : 1;
}

}  // namespace
}  // namespace heddle::node_tests

int main(int argc, char** argv) {
  heddle::node_tests::Options options;
  CLI::App app("Runs the official ONNX node tests (onnx/backend/test/data/node of the package onnx 1.22.0)");
  app.add_option("--data", options.data, "folder of the tests")->required();
  app.add_option("--filter", options.filter, "only folders whose name contains this");
  app.add_option("--mode", options.mode, "reference: float64 evaluator; cpu: compiled kernels")
      ->check(CLI::IsMember({"reference", "cpu"}));
  app.add_option("--table", options.table, "write the table by operator to this file");
  app.add_option("--percent", options.percent, "run this share of the tests, chosen by --seed")
      ->check(CLI::Range(1, 100));
  app.add_option("--seed", options.seed, "of --percent");
  app.add_option("--timeout", options.timeout_s, "seconds that one test may take");
  app.add_flag("--verbose", options.verbose, "print tests that pass too");
  CLI11_PARSE(app, argc, argv);
  try {
    return heddle::node_tests::run_all(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 4;
  }
}
