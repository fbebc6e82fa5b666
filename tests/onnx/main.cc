#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/check.h"
#include "run_case.h"
#include "table.h"

// Runs the official ONNX node tests in processes of their own, so that a crash or a hang is a result like others.
namespace heddle::node_tests {
namespace {

constexpr int kSkipped = 77;  // for CTest: the data is not there

struct Options {
  std::string data = HEDDLE_NODE_TEST_DATA, filter, mode = "reference", table;
  int percent = 100;  // of the tests, chosen by seed
  std::pair<size_t, size_t> part = {1, 1};
  // Another one each day.
  unsigned seed = static_cast<unsigned>(std::time(nullptr) / (24 * 60 * 60));
  int timeout_s = 60;
  size_t batch = 48;  // tests that share a process, and where they are compiled a library
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

// Messages of a child: position, outcome and lengths in a fixed line, then operator and text.
void send(int fd, size_t index, const std::string& op, const Verdict& verdict) {
  const std::string message = fmt::format("{} {} {} {}\n{}{}", index, static_cast<char>(verdict.outcome), op.size(),
                                          verdict.text.size(), op, verdict.text);
  for (size_t sent = 0; sent < message.size();) {
    const ssize_t count = write(fd, message.data() + sent, message.size() - sent);
    if (count <= 0) return;
    sent += static_cast<size_t>(count);
  }
}

void receive(const std::string& text, std::vector<Row>& rows, std::vector<bool>& done) {
  size_t at = 0;
  for (;;) {
    const size_t line = text.find('\n', at);
    size_t index = 0, op = 0, length = 0;
    char outcome = 0;
    if (line == std::string::npos ||
        std::sscanf(text.c_str() + at, "%zu %c %zu %zu", &index, &outcome, &op, &length) != 4 || index >= rows.size() ||
        text.size() < line + 1 + op + length) {
      return;
    }
    rows[index].op = text.substr(line + 1, op);
    rows[index].verdict = {static_cast<Outcome>(outcome), text.substr(line + 1 + op, length)};
    done[index] = true;
    at = line + 1 + op + length;
  }
}

// Runs some tests in a process of their own. One that ends early takes the whole batch down, so the tests that it did
// not report are then run one by one.
std::vector<Row> run_batch(const Options& options, std::span<const std::string> folders) {
  std::vector<Row> rows;
  for (const std::string& folder : folders) rows.push_back({folder, "(unknown)", {}});
  std::vector<bool> done(rows.size(), false);
  int ends[2];
  if (pipe(ends) != 0) fail(ErrorCode::kFile, "pipe", "it cannot be made");
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) fail(ErrorCode::kOutOfMemory, "fork", "no process can be made");
  if (pid == 0) {
    close(ends[0]);
    const Report report = [&](size_t index, const std::string& op, const Verdict& verdict) {
      send(ends[1], index, op, verdict);
    };
    if (options.mode == "reference") {
      run_reference(options.data, folders, report);
    } else {
      run_compiled(options.data, folders, options.mode, report);
    }
    _exit(0);
  }
  close(ends[1]);
  const auto allowed = std::chrono::seconds(options.timeout_s * static_cast<int>(folders.size()));
  const auto deadline = std::chrono::steady_clock::now() + allowed;
  receive(read_all(ends[0], deadline), rows, done);
  close(ends[0]);
  const bool late = std::chrono::steady_clock::now() >= deadline;
  if (late) kill(pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (done[i]) continue;
    if (rows.size() > 1) {
      rows[i] = run_batch(options, folders.subspan(i, 1))[0];
    } else {
      rows[i].verdict.text = late                  ? fmt::format("no end after {} s", options.timeout_s)
                             : WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                                   : "it exited early";
    }
  }
  return rows;
}

int run_all(const Options& options) {
  if (!std::filesystem::is_directory(options.data)) {
    fmt::print(stderr, "{} is not there; scripts/fetch_test_data.py fetches it\n", options.data);
    return kSkipped;
  }
  if (options.percent < 100) fmt::print("--seed {}\n", options.seed);
  std::vector<std::string> folders;
  std::mt19937 rng(options.seed);
  for (const std::string& folder : list_cases(options.data)) {
    const bool chosen = static_cast<int>(rng() % 100) < options.percent;
    if (chosen && folder.find(options.filter) != std::string::npos) folders.push_back(folder);
  }
  const auto [part, parts] = options.part;
  const size_t begin = folders.size() * (part - 1) / parts, end = folders.size() * part / parts;
  folders = std::vector<std::string>(folders.begin() + static_cast<ptrdiff_t>(begin),
                                     folders.begin() + static_cast<ptrdiff_t>(end));
  std::vector<Row> rows;
  for (size_t at = 0; at < folders.size(); at += options.batch) {
    const std::span<const std::string> batch(folders.data() + at, std::min(options.batch, folders.size() - at));
    for (Row& row : run_batch(options, batch)) {
      const Verdict& verdict = row.verdict;
      const bool passed = verdict.outcome == Outcome::kPassed || verdict.outcome == Outcome::kRandom;
      if (!passed || options.verbose) {
        fmt::print("{} {} [{}] {}\n", static_cast<char>(verdict.outcome), row.test, row.op, verdict.text);
      }
      rows.push_back(std::move(row));
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
  for (Row& row : rows) {  // the table is the same wherever the data lies
    const size_t at = row.verdict.text.find(options.data + "/");
    if (at != std::string::npos) row.verdict.text.erase(at, options.data.size() + 1);
  }
  if (!options.table.empty()) std::ofstream(options.table) << operator_table(rows, options.mode);
  return bad == 0 && total > 0 && passed * 100 >= total * 80 ? 0 : 1;
}

}  // namespace
}  // namespace heddle::node_tests

int main(int argc, char** argv) {
  heddle::node_tests::Options options;
  CLI::App app("Runs the official ONNX node tests (onnx/backend/test/data/node of the package onnx 1.22.0)");
  app.add_option("--data", options.data, "folder of the tests (where CMake found them: " HEDDLE_NODE_TEST_DATA ")");
  app.add_option("--filter", options.filter, "only folders whose name contains this");
  app.add_option("--mode", options.mode, "reference: float64 evaluator; cpu, cuda, hip: compiled kernels")
      ->check(CLI::IsMember({"reference", "cpu", "cuda", "hip"}));
  app.add_option("--table", options.table, "write the table by operator to this file");
  app.add_option("--percent", options.percent, "run this share of the tests, chosen by --seed")
      ->check(CLI::Range(1, 100));
  app.add_option("--seed", options.seed, "of --percent (the day)");
  app.add_option("--part", options.part, "K N: the K-th of N parts of them, for several processes at once")
      ->check(CLI::Range(1, 1000));
  app.add_option("--batch", options.batch, "tests that share a process (and a compiled library)")
      ->check(CLI::Range(1, 1000));
  app.add_option("--timeout", options.timeout_s, "seconds that one test may take");
  app.add_flag("--verbose", options.verbose, "print tests that pass too");
  CLI11_PARSE(app, argc, argv);
  if (options.part.first > options.part.second) return app.exit(CLI::ValidationError("--part", "K is above N"));
  try {
    return heddle::node_tests::run_all(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 4;
  }
}
