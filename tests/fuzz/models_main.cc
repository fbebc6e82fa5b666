// heddle_fuzz_models: damaged ONNX files through the importer; tests/README.md says how to use it.
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/clock.h"
#include "frontend/onnx/importer.h"
#include "heddle/error.h"
#include "ir/verify.h"
#include "tests/fuzz/isolation.h"
#include "tests/fuzz/model_mutator.h"

namespace heddle::fuzz {
namespace {

struct Options {
  uint64_t count = 500, seed = 1, batch = 250;
  std::vector<std::string> folders;
  std::string save;
  uint64_t max_bytes = 1 << 20, memory_mb = 2048;
  int max_failures = 10, timeout = 60;
};

constexpr int kSkipped = 77;

struct Model {
  std::string path, bytes;
};

std::vector<Model> load_models(const Options& options) {
  std::vector<std::string> paths;
  for (const std::string& folder : options.folders) {
    std::error_code ignored;
    for (auto at = std::filesystem::recursive_directory_iterator(folder, ignored);
         at != std::filesystem::recursive_directory_iterator(); at.increment(ignored)) {
      const bool model = at->path().extension() == ".onnx" && at->is_regular_file();
      if (model && at->file_size() > 0 && at->file_size() <= options.max_bytes) paths.push_back(at->path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Model> models;
  for (const std::string& path : paths) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    models.push_back({path, bytes.str()});
  }
  return models;
}

struct Mutant {
  const Model* model;
  std::string bytes;
};

Mutant make_mutant(const std::vector<Model>& models, uint64_t seed) {
  Rng rng(seed);
  const Model& model = rng.pick(models);
  return {&model, mutate(model.bytes, rng.pick(models).bytes, rng)};
}

int64_t peak_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

// "ok", "HDL<code>" or, where the importer broke its promise, "fail ...".
std::string import(const Mutant& mutant) {
  try {
    const auto folder = std::filesystem::path(mutant.model->path).parent_path().string();
    const onnx::Imported imported = onnx::import_model(mutant.bytes, nullptr, folder);
    ir::verify(imported.graph);
    return "ok";
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) return fmt::format("fail internal error: {}", error.what());
    return fmt::format("HDL{}", static_cast<int>(error.code()));
  } catch (const std::exception& error) {
    return fmt::format("fail not a heddle::Error: {}", error.what());
  }
}

using Failures = std::vector<std::pair<uint64_t, std::string>>;

// Imports the mutants of [begin, end) in a child process. Returns the first seed that is still to do.
uint64_t run_batch(const std::vector<Model>& models, uint64_t begin, uint64_t end, const Options& options,
                   std::map<std::string, uint64_t>& outcomes, Failures& failures) {
  uint64_t current = begin;
  const auto work = [&](const auto& send) {
    int64_t peak = peak_mb();
    for (uint64_t seed = begin; seed < end; ++seed) {
      send(fmt::format("begin {}", seed));
      std::string outcome = import(make_mutant(models, seed));
      const int64_t grown = peak_mb() - peak;
      if (grown > static_cast<int64_t>(options.memory_mb)) outcome = fmt::format("fail {} MB of memory", grown);
      peak = std::max(peak, peak_mb());
      send("end " + outcome);
    }
  };
  const auto receive = [&](const std::string& line) {
    if (line.rfind("begin ", 0) == 0) {
      current = std::stoull(line.substr(6));
    } else if (line.rfind("end fail ", 0) == 0) {
      failures.emplace_back(current, line.substr(9));
    } else {
      ++outcomes[line.substr(4)];
    }
  };
  const std::string death = run_isolated(work, receive, options.timeout);
  if (death.empty()) return end;
  failures.emplace_back(current, death);
  return current + 1;
}

int run(const Options& options) {
  const std::vector<Model> models = load_models(options);
  if (models.empty()) {
    fmt::print("no ONNX files up to {} bytes in {}; skipped\n", options.max_bytes, fmt::join(options.folders, ", "));
    return kSkipped;
  }
  const double start = wall_seconds();
  std::map<std::string, uint64_t> outcomes;
  Failures failures;
  const uint64_t end = options.seed + options.count;
  uint64_t seed = options.seed;
  while (seed < end && failures.size() < static_cast<size_t>(options.max_failures)) {
    const size_t before = failures.size();
    seed = run_batch(models, seed, std::min(end, seed + options.batch), options, outcomes, failures);
    for (size_t i = before; i < failures.size(); ++i) {
      const auto& [bad, why] = failures[i];
      const Mutant mutant = make_mutant(models, bad);
      fmt::print("FAILED seed {} of {}: {}\n", bad, mutant.model->path, why);
      if (options.save.empty()) continue;
      std::ofstream(fmt::format("{}/mutant-{}.onnx", options.save, bad), std::ios::binary) << mutant.bytes;
    }
    std::fflush(stdout);
  }
  const double seconds = wall_seconds() - start;
  fmt::print("{} mutants of {} models in {:.1f} s:", seed - options.seed, models.size(), seconds);
  for (const auto& [outcome, count] : outcomes) fmt::print(" {} {},", count, outcome);
  fmt::print(" {} failures\n", failures.size());
  return failures.empty() ? 0 : 1;
}

}  // namespace
}  // namespace heddle::fuzz

#if defined(__SANITIZE_ADDRESS__)
// An allocation beyond this is a defect: a small file asks for it.
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096:hard_rss_limit_mb=8192";
}
#endif

int main(int argc, char** argv) {
  heddle::fuzz::Options options;
  CLI::App app("Damaged ONNX files: the importer must give a graph or a heddle::Error");
  app.add_option("--dir", options.folders, "folders with ONNX files, searched recursively")->required();
  app.add_option("--count", options.count, "mutants to try");
  app.add_option("--seed", options.seed, "seed of the first mutant; the next ones count up");
  app.add_option("--max-bytes", options.max_bytes, "larger files are left out");
  app.add_option("--max-failures", options.max_failures, "stop after so many");
  app.add_option("--memory-mb", options.memory_mb, "growth of the process that counts as a failure");
  app.add_option("--timeout", options.timeout, "seconds for one import that count as a hang");
  app.add_option("--save", options.save, "folder for the mutants that failed");
  CLI11_PARSE(app, argc, argv);
  return heddle::fuzz::run(options);
}
