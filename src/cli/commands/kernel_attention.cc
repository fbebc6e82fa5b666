// `heddle kernel attention`: the candidates of one attention, their times and whether the fastest is right.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/support.h"
#include "driver/tune/attention_bench.h"
#include "jit/cuda/nvrtc.h"

namespace heddle::cli {
namespace {

using driver::AttentionBenchResult;
using driver::AttentionProblem;
using driver::AttentionTiming;

AttentionProblem problem_of(const AttentionArguments& a) {
  AttentionProblem p;
  p.type = a.type == "bf16" ? DType::kBF16 : DType::kF16;
  p.batch = a.batch, p.heads = a.heads, p.kv_heads = a.kv_heads == 0 ? a.heads : a.kv_heads;
  p.m = a.m, p.n = a.n == 0 ? a.m : a.n, p.depth = a.depth;
  p.causal = a.causal || a.window > 0, p.window = a.window;
  return p;
}

nlohmann::json json_of(const AttentionProblem& p, const AttentionArguments& a) {
  return {{"type", a.type}, {"batch", p.batch}, {"heads", p.heads},   {"kv_heads", p.kv_heads}, {"m", p.m},
          {"n", p.n},       {"depth", p.depth}, {"causal", p.causal}, {"window", p.window}};
}

// Without a GPU: what would be tried on a GPU of sm_90, and whether it compiles.
int list_candidates(const AttentionProblem& problem, const Arguments& arguments) {
  const Target target = Target::cuda_h200(1);
  Table table({"candidate", "predicted", "what"});
  nlohmann::json list = nlohmann::json::array();
  int failures = 0;
  std::vector<schedule::Config> configs = driver::attention_configs(problem, target);
  const auto most = static_cast<size_t>(std::max(arguments.kernel.most, 1));
  if (!arguments.kernel.all && configs.size() > most) configs.resize(most);
  for (const schedule::Config& config : configs) {
    std::string what = "-";
    if (!arguments.kernel.predict) {
      try {
        const std::string unit = driver::attention_unit(problem, config, target);
        const jit::CompiledCubin cubin =
            jit::compile_cubin(unit, target.cuda.architecture(), arguments.options.use_cache);
        what = cubin.from_cache ? "compiled (cache)" : fmt::format("compiled in {:.2f} s", cubin.seconds);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kCompilerFailed) throw;
        what = error.why().substr(0, error.why().find('\n'));
        ++failures;
      }
    }
    const std::string name = schedule::name_of(config);
    table.add({name, fmt::format("{:.1f} us", config.predicted_us), what});
    list.push_back({{"config", name}, {"predicted_us", config.predicted_us}, {"what", what}});
  }
  if (arguments.json) {
    print_json({{"candidates", std::move(list)}, {"failures", failures}});
  } else {
    table.print();
  }
  return failures == 0 ? 0 : 1;
}

void print_result(const AttentionProblem& problem, const AttentionBenchResult& r) {
  Table table({"candidate", "predicted", "measured", "TFLOP/s", "runs"});
  for (const AttentionTiming& t : r.timings) {
    const bool timed = t.median_us > 0;
    table.add({schedule::name_of(t.config), fmt::format("{:.1f} us", t.config.predicted_us),
               timed ? fmt::format("{:.2f} us", t.median_us) : "-",
               timed ? fmt::format("{:.1f}", problem.operations() / t.median_us / 1e6) : "-",
               fmt::format("{}", t.samples)});
  }
  table.print();
  for (const AttentionTiming& t : r.timings) {
    if (!t.failure.empty()) print_line(fmt::format("{}: {}", schedule::name_of(t.config), t.failure));
  }
  if (r.best < 0) return;
  const AttentionTiming& best = r.timings[static_cast<size_t>(r.best)];
  print_line(fmt::format("best {}: {:.2f} us, {:.1f} TFLOP/s{}", schedule::name_of(best.config), best.median_us,
                         problem.operations() / best.median_us / 1e6,
                         r.error < 0 ? "" : fmt::format(", error {:.3f} of its bound", r.error)));
}

nlohmann::json json_of(const AttentionProblem& problem, const AttentionBenchResult& r, const AttentionArguments& a) {
  nlohmann::json result = json_of(problem, a);
  nlohmann::json candidates = nlohmann::json::array();
  for (const AttentionTiming& t : r.timings) {
    candidates.push_back({{"config", schedule::name_of(t.config)},
                          {"predicted_us", t.config.predicted_us},
                          {"us", t.median_us},
                          {"samples", t.samples},
                          {"failure", t.failure}});
  }
  const double us = r.best < 0 ? 0 : r.timings[static_cast<size_t>(r.best)].median_us;
  result["device"] = r.device;
  result["us"] = us;
  result["tflops"] = us > 0 ? problem.operations() / us / 1e6 : 0.0;
  result["best"] = r.best < 0 ? "" : schedule::name_of(r.timings[static_cast<size_t>(r.best)].config);
  result["pick_us"] = r.timings.empty() ? 0.0 : r.timings.front().median_us;
  result["error"] = r.error;
  result["candidates"] = std::move(candidates);
  return result;
}

}  // namespace

int kernel_attention_command(const Arguments& arguments) {
  const KernelArguments& k = arguments.kernel;
  const AttentionProblem problem = problem_of(arguments.attention);
  if (k.compile_only || k.predict) return list_candidates(problem, arguments);
  driver::AttentionBenchOptions options;
  options.device = k.device, options.verify = k.verify;
  options.most = k.all ? 0 : k.most;
  const AttentionBenchResult result = driver::bench_attention(problem, options);
  if (arguments.json) {
    print_json_line(json_of(problem, result, arguments.attention));
  } else {
    print_result(problem, result);
  }
  return result.best < 0 || (k.verify && result.error > 1) ? 1 : 0;
}

}  // namespace heddle::cli
