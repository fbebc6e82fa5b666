#include "cli/commands/kernel_group.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "base/thread/thread.h"
#include "base/thread/thread_pool.h"
#include "cli/support.h"
#include "jit/cuda/nvrtc.h"

namespace heddle::cli {

std::map<std::string, CompiledUnit> compile_units(const std::set<std::string>& distinct, const CudaTarget& target,
                                                  bool use_cache) {
  const std::vector<std::string> units(distinct.begin(), distinct.end());
  std::vector<CompiledUnit> results(units.size());
  const std::unique_ptr<ThreadPool> pool =
      pool_of_up_to(std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
  pool->run(static_cast<int64_t>(units.size()), [&](int64_t begin, int64_t end, int) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      try {
        const jit::CompiledCubin cubin = jit::compile_cubin(units[i], target.architecture(), use_cache);
        results[i].what = cubin.from_cache ? "compiled (cache)" : fmt::format("compiled in {:.2f} s", cubin.seconds);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kCompilerFailed) throw;
        results[i] = {error.why().substr(0, error.why().find('\n')), true};
      }
    }
  });
  std::map<std::string, CompiledUnit> found;
  for (size_t i = 0; i < units.size(); ++i) found.emplace(units[i], std::move(results[i]));
  return found;
}

CudaTarget chip_target(const KernelArguments& k) {
  if (k.chip.empty()) return CudaTarget::pinned(k.sm);
  const KnownChip& chip = nearest_chip(k.chip, k.sm);
  if (!k.chip.starts_with(chip.name)) {
    fail(ErrorCode::kInvalidArgument, "--chip " + k.chip, "nothing is known of a chip of this name",
         "Leave it out, or give the name as `heddle devices` prints it");
  }
  CudaTarget target = CudaTarget::pinned(chip.architecture);
  target.model = chip.model;
  return target;
}

namespace {

using driver::GroupBenchResult;
using driver::GroupProblem;
using driver::GroupTiming;

// Without a GPU: what would be tried on the chip of --sm, and whether it compiles.
int list_candidates(const GroupProblem& problem, const Arguments& arguments) {
  const KernelArguments& k = arguments.kernel;
  const Target target = Target::of(chip_target(k));
  const auto configs = driver::group_configs(problem, target, k.all ? 0 : std::max(k.most, 1), k.only);
  std::vector<std::string> units(configs.size());
  for (size_t i = 0; i < configs.size() && !k.predict; ++i) units[i] = driver::group_unit(problem, configs[i], target);
  std::set<std::string> distinct(units.begin(), units.end());
  distinct.erase("");
  const auto compiled = compile_units(distinct, target.cuda, arguments.options.use_cache);
  Table table({"candidate", "predicted", "why", "what"});
  nlohmann::json list = nlohmann::json::array();
  int failures = 0;
  for (size_t i = 0; i < configs.size(); ++i) {
    const auto found = compiled.find(units[i]);
    const std::string what = found == compiled.end() ? "-" : found->second.what;
    if (found != compiled.end() && found->second.failed) ++failures;
    const std::string name = schedule::name_of(configs[i]);
    table.add({name, fmt::format("{:.1f} us", configs[i].predicted_us), configs[i].reason, what});
    list.push_back(
        {{"config", name}, {"predicted_us", configs[i].predicted_us}, {"why", configs[i].reason}, {"what", what}});
  }
  if (arguments.json) {
    print_json({{"candidates", std::move(list)}, {"failures", failures}});
  } else {
    table.print();
  }
  return failures == 0 ? 0 : 1;
}

void print_result(const GroupProblem& problem, const GroupBenchResult& r) {
  Table table({"candidate", "why", "measured", "TFLOP/s", "runs"});
  for (const GroupTiming& t : r.timings) {
    const bool timed = t.median_us > 0;
    table.add({schedule::name_of(t.config), t.config.reason, timed ? fmt::format("{:.2f} us", t.median_us) : "-",
               timed ? fmt::format("{:.1f}", problem.operations / t.median_us / 1e6) : "-",
               fmt::format("{}", t.samples)});
  }
  table.print();
  for (const GroupTiming& t : r.timings) {
    if (!t.failure.empty()) print_line(fmt::format("{}: {}", schedule::name_of(t.config), t.failure));
  }
  if (r.best < 0) return;
  const GroupTiming& best = r.timings[static_cast<size_t>(r.best)];
  print_line(fmt::format("best {}: {:.2f} us, {:.1f} TFLOP/s{}", schedule::name_of(best.config), best.median_us,
                         problem.operations / best.median_us / 1e6,
                         r.error < 0 ? "" : fmt::format(", error {:.3f} of its bound", r.error)));
}

nlohmann::json json_of(const GroupProblem& problem, const GroupBenchResult& r, nlohmann::json result) {
  nlohmann::json candidates = nlohmann::json::array();
  for (const GroupTiming& t : r.timings) {
    candidates.push_back({{"config", schedule::name_of(t.config)},
                          {"predicted_us", t.config.predicted_us},
                          {"us", t.median_us},
                          {"samples", t.samples},
                          {"failure", t.failure}});
  }
  const double us = r.best < 0 ? 0 : r.timings[static_cast<size_t>(r.best)].median_us;
  result["device"] = r.device;
  result["us"] = us;
  result["tflops"] = us > 0 ? problem.operations / us / 1e6 : 0.0;
  result["best"] = r.best < 0 ? "" : schedule::name_of(r.timings[static_cast<size_t>(r.best)].config);
  result["pick_us"] = r.timings.empty() ? 0.0 : r.timings.front().median_us;
  result["error"] = r.error;
  result["candidates"] = std::move(candidates);
  return result;
}

}  // namespace

int run_group(const GroupProblem& problem, const nlohmann::json& description, const Arguments& arguments) {
  const KernelArguments& k = arguments.kernel;
  if (k.compile_only || k.predict) return list_candidates(problem, arguments);
  driver::GroupBenchOptions options;
  options.device = k.device, options.verify = k.verify, options.only = k.only;
  options.most = k.all ? 0 : k.most;
  const GroupBenchResult result = driver::bench_group(problem, options);
  if (arguments.json) {
    print_json_line(json_of(problem, result, description));
  } else {
    print_result(problem, result);
  }
  return result.best < 0 || (k.verify && result.error > 1) ? 1 : 0;
}

}  // namespace heddle::cli
