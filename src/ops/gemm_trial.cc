#include "ops/gemm_trial.h"

#include <algorithm>
#include <thread>

#include "base/check.h"
#include "base/thread/thread_pool.h"
#include "jit/cuda/nvrtc.h"
#include "schedule/config/config_source.h"

namespace heddle::ops {

// One candidate on the device.
struct GemmTrial::Instance {
  KernelText kernel;
  std::string cubin;
  std::unique_ptr<runtime::CudaModule> module;
  std::unique_ptr<runtime::CudaBuffer> workspace, counters;
  std::unique_ptr<runtime::CudaSequence> sequence;
  std::unique_ptr<runtime::CudaGraph> graph;
};

GemmTrial::GemmTrial(const runtime::CudaContext& context, const ResolvedGemm& gemm,
                     std::vector<schedule::CudaCandidate> candidates, const Options& options)
    : context_(context), gemm_(gemm), workload_(context, gemm, options.reference, options.seed), timer_(context) {
  for (schedule::CudaCandidate& candidate : candidates) candidates_.emplace_back().candidate = std::move(candidate);
  compile(options);
}

GemmTrial::~GemmTrial() = default;

void GemmTrial::compile(const Options& options) {
  for (size_t i = 0; i < candidates_.size(); ++i) instances_.push_back(std::make_unique<Instance>());
  const CudaTarget& target = context_.device().target;
  const int threads =
      static_cast<int>(std::clamp<size_t>(candidates_.size(), 1, std::max(1u, std::thread::hardware_concurrency())));
  ThreadPool pool(threads);
  pool.run(static_cast<int64_t>(candidates_.size()), [&](int64_t begin, int64_t end, int) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      Candidate& to = candidates_[i];
      try {
        instances_[i]->kernel = make_kernel(gemm_.desc, to.candidate.config, target);
        jit::CompiledCubin cubin =
            jit::compile_cubin(instances_[i]->kernel.unit, target.architecture(), options.use_cache);
        instances_[i]->cubin = std::move(cubin.bytes);
        to.compile_seconds = cubin.seconds;
        to.from_cache = cubin.from_cache;
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kCompilerFailed) throw;
        to.failure = error.what();
      }
    }
  });
}

const runtime::CudaGraph& GemmTrial::graph(size_t candidate) {
  Instance& instance = *instances_[candidate];
  if (instance.graph == nullptr) {
    instance.module = std::make_unique<runtime::CudaModule>(context_, instance.cubin);
    instance.workspace =
        std::make_unique<runtime::CudaBuffer>(context_, static_cast<size_t>(instance.kernel.workspace_bytes));
    instance.counters = zeroed(context_, instance.kernel.counter_bytes);
    instance.sequence = std::make_unique<runtime::CudaSequence>(
        context_, *instance.module, instance.kernel.launches,
        workload_.operands(instance.workspace->address(), instance.counters->address()));
    instance.graph = std::make_unique<runtime::CudaGraph>(context_, [&instance] { instance.sequence->enqueue(); });
  }
  return *instance.graph;
}

double GemmTrial::run(size_t candidate) {
  const Candidate& c = candidates_[candidate];
  if (!c.failure.empty()) fail(ErrorCode::kCompilerFailed, schedule::name_of(c.candidate.config), c.failure);
  return timer_.time_us(graph(candidate)) * 1e-6;
}

std::string GemmTrial::check(size_t candidate) {
  workload_.poison();
  graph(candidate).launch();
  double& error = candidates_[candidate].error;
  error = workload_.check();
  if (error <= 1) return "";
  return fmt::format("its result is wrong: {:.3g} times the error that its types allow", error);
}

void GemmTrial::repeat(size_t candidate, int64_t runs) {
  for (int64_t i = 0; i < runs; ++i) graph(candidate).launch();
  context_.synchronize();
}

}  // namespace heddle::ops
