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
using driver::GroupCandidate;
using driver::GroupProblem;
using driver::GroupTiming;

bool is_timed(const KernelArguments& k) {
  return !k.compile_only && !k.predict;
}

std::string tflops_text(const GroupProblem& problem, double us) {
  const double tflops = problem.operations / us / 1e6;
  return tflops < 1 ? fmt::format("{:.3f}", tflops) : fmt::format("{:.1f}", tflops);
}

std::string predicted_text(double us) {
  return us > 0 ? fmt::format("{:.1f} us", us) : "-";
}

// What would be tried on a chip, and whether it compiles.
int list_candidates(const std::vector<GroupCandidate>& candidates, const std::vector<std::string>& far,
                    const Target& target, const Arguments& arguments) {
  std::vector<std::string> units(candidates.size());
  for (size_t i = 0; i < candidates.size() && !arguments.kernel.predict; ++i) {
    units[i] = driver::group_unit(candidates[i], target);
  }
  std::set<std::string> distinct(units.begin(), units.end());
  distinct.erase("");
  const auto compiled = compile_units(distinct, target.cuda, arguments.options.use_cache);
  Table table({"candidate", "predicted", "why", "what"});
  nlohmann::json list = nlohmann::json::array();
  int failures = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const GroupCandidate& candidate = candidates[i];
    const auto found = compiled.find(units[i]);
    const std::string what = found == compiled.end() ? "-" : found->second.what;
    if (found != compiled.end() && found->second.failed) ++failures;
    const std::string name = schedule::name_of(candidate.config);
    table.add({name, predicted_text(candidate.predicted_us), candidate.config.reason, what});
    list.push_back({{"config", name},
                    {"predicted_us", candidate.predicted_us},
                    {"why", candidate.config.reason},
                    {"kernels", candidate.kernels.kernels.size()},
                    {"what", what}});
  }
  if (arguments.json) {
    print_json({{"candidates", std::move(list)}, {"far_from_floor", far}, {"failures", failures}});
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
               timed ? tflops_text(problem, t.median_us) : "-", fmt::format("{}", t.samples)});
  }
  table.print();
  for (const GroupTiming& t : r.timings) {
    if (!t.failure.empty()) print_line(fmt::format("{}: {}", schedule::name_of(t.config), t.failure));
  }
  if (r.best < 0) return;
  const GroupTiming& best = r.timings[static_cast<size_t>(r.best)];
  print_line(fmt::format("best {}: {:.2f} us, {} TFLOP/s, {:.1f} times its floor{}", schedule::name_of(best.config),
                         best.median_us, tflops_text(problem, best.median_us), best.median_us / r.floor_us,
                         r.error < 0 ? "" : fmt::format(", error {:.3f} of its bound", r.error)));
}

nlohmann::json json_of(const GroupProblem& problem, const GroupBenchResult& r, nlohmann::json result) {
  nlohmann::json candidates = nlohmann::json::array();
  for (const GroupTiming& t : r.timings) {
    candidates.push_back({{"config", schedule::name_of(t.config)},
                          {"predicted_us", t.predicted_us},
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
  result["floor_us"] = r.floor_us;
  result["error"] = r.error;
  result["candidates"] = std::move(candidates);
  return result;
}

}  // namespace

Target group_target(const Arguments& arguments) {
  const KernelArguments& k = arguments.kernel;
  if (k.target == "cpu") {
    if (k.compile_only) {
      fail(ErrorCode::kInvalidArgument, "--compile-only", "it compiles for a GPU that need not be here, not for a CPU",
           "Leave it out: without it candidates are compiled and timed. Or use --predict");
    }
    return Target::host_cpu(arguments.options.threads);
  }
  return is_timed(k) ? Target::cuda_device(k.device) : Target::of(chip_target(k));
}

int run_group(const GroupProblem& problem, const Target& target, const nlohmann::json& description,
              const Arguments& arguments) {
  const KernelArguments& k = arguments.kernel;
  const int most = k.all ? 0 : is_timed(k) ? k.most : std::max(k.most, 1);
  std::vector<GroupCandidate> candidates = driver::group_candidates(problem, target, most, k.only);
  const std::vector<std::string> far = driver::far_kernels(problem, candidates.front(), target);
  if (!arguments.json) {
    for (const std::string& line : far) print_line(line);
  }
  if (!is_timed(k)) return list_candidates(candidates, far, target, arguments);
  driver::GroupBenchOptions options;
  options.device = k.device, options.verify = k.verify;
  const GroupBenchResult result = driver::bench_group(problem, std::move(candidates), target, options);
  if (arguments.json) {
    nlohmann::json found = json_of(problem, result, description);
    found["far_from_floor"] = far;
    print_json_line(found);
  } else {
    print_result(problem, result);
  }
  return result.best < 0 || (k.verify && result.error > 1) ? 1 : 0;
}

}  // namespace heddle::cli
