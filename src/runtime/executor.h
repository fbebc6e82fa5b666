#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "runtime/interpreter.h"
#include "runtime/output_pool.h"
#include "runtime/plan.h"

namespace heddle::runtime {

struct Program;
struct Context;

// Runs a plan. Thread-safe: each run takes a context (an arena, scratch and pointer tables) from a free list, which
// grows to the largest number of concurrent runs.
class Executor {
 public:
  // Loads the plan's kernels. `interpreter` may be null when the plan has no reference steps. Throws kDamagedArtefact.
  Executor(std::shared_ptr<const Plan> plan, std::shared_ptr<ThreadPool> pool,
           std::shared_ptr<const Interpreter> interpreter);
  ~Executor();

  // Called after each outermost step with its index; `read` copies a buffer that the step has just written or read.
  using Observer = std::function<void(size_t step, const std::function<Tensor(uint32_t buffer)>& read)>;

  // `inputs` in the order of Plan::inputs; dtype and byte size must match (the caller has checked). Returns tensors in
  // the order of Plan::outputs, owned by the caller. Throws kOutOfMemory, or what a reference step throws.
  std::vector<Tensor> run(std::span<const Tensor> inputs, const Observer& observe = {}) const;

  const Plan& plan() const { return *plan_; }
  // Bytes that one more concurrent run allocates, outputs included.
  int64_t bytes_per_run() const;

 private:
  std::unique_ptr<Context> take_context() const;
  std::vector<Tensor> run_in(Context& context, std::span<const Tensor> inputs, const Observer& observe) const;

  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<ThreadPool> pool_;
  std::shared_ptr<const Interpreter> interpreter_;
  std::unique_ptr<const Program> program_;
  std::shared_ptr<OutputPool> outputs_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Context>> free_;
};

}  // namespace heddle::runtime
