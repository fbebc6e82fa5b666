// `heddle kernel gemm`: one operator on a GPU, its candidates, and the vendor's library beside it.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "cli/support.h"
#include "driver/cuda/gemm_bench.h"
#include "jit/cuda/nvrtc.h"
#include "target/cuda_driver.h"

namespace heddle::cli {
namespace {

using driver::GemmBenchResult;
using driver::GemmTiming;

DType parse_type(const std::string& text) {
  const std::string name = text == "tf32"                     ? "f32"
                           : text == "e4m3" || text == "e5m2" ? "f8" + text
                           : text == "int8"                   ? "i8"
                           : text == "int32"                  ? "i32"
                                                              : text;
  if (const auto type = parse_dtype(name)) return *type;
  fail(ErrorCode::kInvalidArgument, "--dtype", fmt::format("\"{}\" is no type", text),
       "Types: f16, bf16, tf32, e4m3, e5m2, int8");
}

// What a product of such operands is usually stored as.
DType default_output(DType in) {
  switch (in) {
    case DType::kF32:
      return DType::kF32;
    case DType::kI8:
      return DType::kI32;
    case DType::kF16:
      return DType::kF16;
    default:
      return DType::kBF16;
  }
}

schedule::CudaGemmProblem problem_of(const KernelArguments& k) {
  schedule::CudaGemmProblem p;
  p.in = parse_type(k.dtype);
  p.out = k.out.empty() ? default_output(p.in) : parse_type(k.out);
  p.m = k.m;
  p.n = k.n;
  p.k = k.k;
  p.batch = k.batch;
  p.lda = k.lda;
  p.ldb = k.ldb;
  p.ldd = k.ldd;
  p.a_k_major = k.layout == "nt" || k.layout == "nn";
  p.b_k_major = k.layout == "nt" || k.layout == "tt";
  return p.resolved();
}

nlohmann::json json_of(const GemmBenchResult& r, const KernelArguments& k) {
  nlohmann::json candidates = nlohmann::json::array();
  for (const GemmTiming& t : r.timings) {
    candidates.push_back({{"config", t.candidate.config.name()},
                          {"predicted_us", t.candidate.predicted_us},
                          {"us", t.median_us},
                          {"error", std::isfinite(t.error) ? t.error : 1e30},
                          {"compile_s", t.compile_seconds},
                          {"failure", t.failure}});
  }
  return {{"device", r.device},
          {"m", r.problem.m},
          {"n", r.problem.n},
          {"k", r.problem.k},
          {"batch", r.problem.batch},
          {"dtype", k.dtype},
          {"layout", k.layout},
          {"epilogue", k.epilogue},
          {"us", r.best_us},
          {"library_us", r.library_us},
          {"library_first_us", r.library_first_us},
          {"library_algorithms", r.library_algorithms},
          {"floor_us", r.floor_us},
          {"empty_graph_us", r.empty_graph_us},
          {"best", r.best < 0 ? "" : r.timings[static_cast<size_t>(r.best)].candidate.config.name()},
          {"pick_us", r.pick < 0 ? 0.0 : r.timings[static_cast<size_t>(r.pick)].median_us},
          {"best_quick_us", r.best < 0 ? 0.0 : r.timings[static_cast<size_t>(r.best)].median_us},
          {"verified", r.verified},
          {"candidates", candidates}};
}

void print_result(const GemmBenchResult& r) {
  Table table({"candidate", "predicted", "measured", "of floor", "error/bound", "compile"});
  for (const GemmTiming& t : r.timings) {
    const bool timed = t.median_us > 0;
    table.add({t.candidate.config.name(), fmt::format("{:.1f} us", t.candidate.predicted_us),
               timed ? fmt::format("{:.2f} us", t.median_us) : "-",
               timed ? fmt::format("{:.0f}%", 100 * r.floor_us / t.median_us) : "-",
               t.error < 0 ? "-" : fmt::format("{:.3f}", t.error),
               t.from_cache ? "cache" : fmt::format("{:.2f} s", t.compile_seconds)});
  }
  table.print();
  for (const GemmTiming& t : r.timings) {
    if (!t.failure.empty()) print_line(fmt::format("{}: {}", t.candidate.config.name(), t.failure));
  }
  if (r.best >= 0) {
    print_line(fmt::format("best {}: {:.2f} us, {:.1f} T operations/s, floor {:.2f} us, empty graph {:.2f} us",
                           r.timings[static_cast<size_t>(r.best)].candidate.config.name(), r.best_us,
                           r.problem.operations() / r.best_us / 1e6, r.floor_us, r.empty_graph_us));
  }
  if (r.library_us > 0) {
    print_line(fmt::format("cuBLASLt: {:.2f} us best of {}, first {:.2f} us; ratio {:.3f}", r.library_us,
                           r.library_algorithms, r.library_first_us, r.library_us / r.best_us));
  } else if (!r.library_why.empty()) {
    print_line("cuBLASLt: " + r.library_why);
  }
}

// Without a GPU: what would be tried, why others cannot run, and whether it compiles.
int list_candidates(const schedule::CudaGemmProblem& problem, const KernelArguments& k) {
  const CudaTarget target;
  const codegen::GemmEpilogue epilogue = codegen::lower(codegen::CudaEpilogue::parse(k.epilogue, problem.out), problem);
  Table table({"candidate", "predicted", "what"});
  int shown = 0, failures = 0;
  for (const schedule::CudaGemmCandidate& c : schedule::enumerate(problem, target)) {
    if (!k.all && (shown == k.most || !c.rejected.empty())) break;
    std::string what = c.rejected;
    if (what.empty()) {
      try {
        const codegen::CudaGemmUnit unit = codegen::gemm_unit(problem, c.config, epilogue.epilogue, epilogue.operands);
        const jit::CompiledCubin cubin = jit::compile_cubin(unit.source(), "sm_90a", true);
        what = cubin.from_cache ? "compiled (cache)" : fmt::format("compiled in {:.2f} s", cubin.seconds);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kCompilerFailed) throw;
        what = error.why().substr(0, error.why().find('\n'));
        ++failures;
      }
    }
    table.add({c.config.name(), c.rejected.empty() ? fmt::format("{:.1f} us", c.predicted_us) : "-", what});
    ++shown;
  }
  table.print();
  return failures == 0 ? 0 : 1;
}

}  // namespace

int kernel_command(const Arguments& arguments) {
  const KernelArguments& k = arguments.kernel;
  const schedule::CudaGemmProblem problem = problem_of(k);
  if (k.compile_only) return list_candidates(problem, k);
  driver::GemmBenchOptions options;
  options.ordinal = k.device;
  options.epilogue = k.epilogue;
  options.most = k.all ? 0 : k.most;
  options.verify = k.verify;
  options.use_cache = arguments.options.use_cache;
  options.seed = arguments.seed + 1;
  const GemmBenchResult result = driver::bench_gemm(problem, options);
  if (arguments.json) {
    print_line(json_of(result, k).dump());
  } else {
    print_result(result);
  }
  return options.verify && !result.verified ? 1 : 0;
}

}  // namespace heddle::cli
