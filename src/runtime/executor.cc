#include "runtime/executor.h"

#include "base/check.h"
#include "runtime/cpu_executor.h"
#include "runtime/cuda/executor.h"

namespace heddle::runtime {

bool runs_on_gpu(const Plan& plan) {
  return plan.target.starts_with("cuda-") || made_for_hip(plan);
}

bool made_for_hip(const Plan& plan) {
  return plan.target.starts_with("hip-");
}

void Executor::repeat(std::span<const Tensor> inputs, const std::function<void(const Repeat&)>& use) const {
  use([&](int64_t runs) {
    for (int64_t i = 0; i < runs; ++i) run(inputs);
  });
}

void Executor::refuse_enqueue() {
  fail(ErrorCode::kInvalidArgument, "enqueue", "the model runs on a CPU",
       "Load it with a GPU as its target, or use run()");
}

void Executor::refuse_run_at() {
  fail(ErrorCode::kInvalidArgument, "run_at", "the model runs on a GPU", "Use enqueue()");
}

std::unique_ptr<Executor> make_executor(std::shared_ptr<const Plan> plan, std::shared_ptr<ThreadPool> pool,
                                        std::shared_ptr<const Interpreter> interpreter,
                                        const ExecutorOptions& options) {
  if (runs_on_gpu(*plan)) {
    return std::make_unique<CudaExecutor>(std::move(plan), std::move(pool), std::move(interpreter), options.device,
                                          options.callers_memory);
  }
  return std::make_unique<CpuExecutor>(std::move(plan), std::move(pool), std::move(interpreter), options.libraries);
}

}  // namespace heddle::runtime
