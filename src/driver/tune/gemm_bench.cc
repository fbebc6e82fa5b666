#include "driver/tune/gemm_bench.h"

#include <memory>
#include <set>
#include <thread>

#include "base/check.h"
#include "base/thread/thread.h"
#include "base/thread/thread_pool.h"
#include "driver/tune/cublaslt.h"
#include "jit/cuda/nvrtc.h"
#include "ops/gemm_trial.h"
#include "runtime/cuda/launch.h"
#include "schedule/config/config_source.h"
#include "tune/place.h"

namespace heddle::driver {
namespace {

using runtime::CudaBuffer;
using runtime::CudaContext;
using runtime::CudaGraph;
using runtime::CudaTimer;

double time_median(CudaTimer& timer, const CudaGraph& graph, int repeats) {
  std::vector<double> times;
  timer.time_us(graph);  // the first launch loads code
  for (int i = 0; i < repeats; ++i) times.push_back(timer.time_us(graph));
  return tune::median_of(std::move(times));
}

double time_empty_graph(const CudaContext& context, CudaTimer& timer, int repeats) {
  const CudaBuffer word(context, 4);
  const CudaGraph empty(context, [&] {
    context.driver().check(context.driver().set_d32_async(word.address(), 0, 1, context.stream()), "cuMemsetD32Async");
  });
  return time_median(timer, empty, repeats);
}

// The library's best algorithm, then both alternating.
void time_beside_library(GemmBenchResult& result, const CudaContext& context, ops::GemmTrial& trial,
                         const GemmBenchOptions& options) {
  constexpr int kQuick = 7;
  CudaTimer& timer = trial.timer();
  std::unique_ptr<CublasLt> library;
  if (context.device().target.emulated) {
    result.library_why = "the GPU is emulated";
  } else if (options.library) {
    library = CublasLt::load(context, result.library_why);
  }
  std::unique_ptr<CudaGraph> theirs;
  if (library != nullptr) {
    const auto problem = library->prepare(result.problem, trial.workload().operands(0, 0));
    result.library_algorithms = CublasLt::algorithms(*problem);
    result.library_why = result.library_algorithms == 0 ? "it supports no such problem" : "";
    double best = 0;
    for (int i = 0; i < result.library_algorithms; ++i) {
      bool good = true;
      auto graph = std::make_unique<CudaGraph>(context, [&] { good = library->enqueue(*problem, i); });
      if (!good) continue;
      const double us = time_median(timer, *graph, kQuick);
      if (i == 0) result.library_first_us = us;
      if (theirs == nullptr || us < best) {
        best = us;
        theirs = std::move(graph);
      }
    }
  }
  const CudaGraph& ours = trial.graph(static_cast<size_t>(result.best));
  std::vector<double> our_times, their_times;
  for (int i = 0; i < options.repeats; ++i) {
    our_times.push_back(timer.time_us(ours));
    if (theirs != nullptr) their_times.push_back(timer.time_us(*theirs));
  }
  result.best_us = tune::median_of(our_times);
  result.library_us = tune::median_of(their_times);
}

void take_times(GemmBenchResult& result, const ops::GemmTrial& trial, const tune::TunerResult& tuned, bool verify) {
  for (size_t i = 0; i < trial.size(); ++i) {
    const ops::GemmTrial::Candidate& from = trial.candidates()[i];
    const tune::CandidateTimes& times = tuned.times[i];
    GemmTiming& to = result.timings.emplace_back();
    to.candidate = from.candidate;
    to.compile_seconds = from.compile_seconds, to.from_cache = from.from_cache;
    to.median_us = times.median * 1e6;
    to.samples = static_cast<int>(times.seconds.size());
    to.dropped = times.dropped;
    if (verify) to.error = from.error;
    to.failure = times.failure;
    if (!to.failure.empty() && from.failure.empty()) result.verified = false;  // one that spills is none
    if (to.failure.empty() && result.pick < 0) result.pick = static_cast<int>(i);
  }
  if (tuned.ok) result.best = static_cast<int>(tuned.winner);
}

}  // namespace

void compile_ahead(const std::vector<ops::GemmProblem>& problems, const GemmBenchOptions& options) {
  const CudaTarget target = runtime::CudaContext::of_device(options.device)->device().target;
  std::set<std::string> distinct;
  for (const ops::GemmProblem& problem : problems) {
    const ops::ResolvedGemm gemm = ops::resolve(problem);
    if (gemm.is_empty()) continue;
    for (const schedule::CudaCandidate& c : ops::worthwhile(gemm, target, options.most, options.family)) {
      distinct.insert(ops::make_kernel(gemm.desc, c.config, target).unit);
    }
  }
  const std::vector<std::string> units(distinct.begin(), distinct.end());
  const std::unique_ptr<ThreadPool> pool =
      pool_of_up_to(std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
  pool->run(static_cast<int64_t>(units.size()), [&](int64_t begin, int64_t end, int) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      jit::compile_cubin(units[i], target.architecture(), true, jit::Slow::kAccept);
    }
  });
}

GemmBenchResult bench_gemm(const ops::GemmProblem& given, const GemmBenchOptions& options) {
  const ops::ResolvedGemm gemm = ops::resolve(given);
  const auto context = runtime::CudaContext::of_device(options.device);
  const CudaTarget& target = context->device().target;
  GemmBenchResult result;
  result.problem = gemm.problem;
  result.device = context->device().name;
  result.operations = gemm.operations();
  result.floor_us = gemm.floor_us(target);
  if (gemm.is_empty()) return result;  // nothing to do

  ops::GemmTrial trial(*context, gemm, ops::worthwhile(gemm, target, options.most, options.family),
                       {options.verify, options.use_cache, options.seed});
  result.empty_graph_us = time_empty_graph(*context, trial.timer(), options.repeats);
  tune::TunerOptions tuner;
  tuner.budget_seconds = 60;
  tuner.rounds = options.repeats + 1;  // the first does not count
  tuner.margin = 0.005;                // the best is asked for, not a reason to leave the first
  const tune::TunerResult tuned = tune::choose_best(trial, tuner);
  take_times(result, trial, tuned, options.verify);
  if (result.best < 0) return result;
  time_beside_library(result, *context, trial, options);
  if (options.store) {
    tune::user_database().store(tune::place_of(context->device()), gemm.text(),
                                tune::record_of(tuned, schedule::name_of(result.timings[tuned.winner].candidate.config),
                                                schedule::name_of(result.timings.front().candidate.config)));
  }
  return result;
}

}  // namespace heddle::driver
