#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/thread/thread_pool.h"
#include "runtime/interpreter.h"
#include "runtime/output_pool.h"
#include "runtime/plan.h"

namespace heddle::runtime {

// Runs a plan. Thread-safe: each run takes a state (arena, scratch, pointers) from a free list, which grows to the
// largest number of concurrent runs.
class Executor {
 public:
  virtual ~Executor() = default;

  // Called after each outermost step with its index; `read` copies a buffer that the step has just written or read.
  using Observer = std::function<void(size_t step, const std::function<Tensor(uint32_t buffer)>& read)>;

  // `inputs` in the order of Plan::inputs; dtype and byte size must match (the caller has checked). Returns tensors in
  // the order of Plan::outputs, owned by the caller: those of `into`, where it has any, which have the dtypes and byte
  // sizes of the plan and overlap nothing but the input that is their alias, from its first byte on. Throws
  // kOutOfMemory, kDevice, or what a reference step throws.
  virtual std::vector<Tensor> run(std::span<const Tensor> inputs, const Observer& observe = {},
                                  std::span<const Tensor> into = {}) const = 0;

  // A run on a CPU in memory of the caller, who has checked it: `addresses` of inputs, then of outputs, with what run()
  // says of `into`. Throws kInvalidArgument for a GPU.
  virtual void run_at(std::span<void* const> /*addresses*/) const { refuse_run_at(); }

  // Bytes of the host's memory that one more concurrent run allocates, outputs included.
  virtual int64_t bytes_per_run() const = 0;

  // Seconds that the device works on each of `runs` runs, without copies from and to the host; empty for a CPU. `cold`:
  // other memory is written before each run, until its caches hold nothing of the plan's.
  virtual std::vector<double> device_seconds(std::span<const Tensor>, int /*runs*/, bool /*cold*/ = false) const {
    return {};
  }

  // The same for each outermost step: medians over `runs` runs in each of which the steps follow one another as they do
  // in run(). 0 for a step that does nothing or waits for the host; empty for a CPU.
  virtual std::vector<double> step_seconds(std::span<const Tensor>, int /*runs*/) const { return {}; }

  // What enqueue() needs of the device's memory beside inputs and outputs. Makes ready what enqueue() uses.
  virtual size_t workspace_bytes() const { refuse_enqueue(); }
  // Puts a run onto a stream of the caller, in the caller's memory (runtime/cuda/enqueuer.h). `addresses`: of inputs,
  // of outputs, of the workspace. Throws kInvalidArgument for a CPU, kUnsupportedOperator for plans in which the
  // host takes part in a run.
  virtual void enqueue(std::vector<uint64_t> /*addresses*/, void* /*stream*/) const { refuse_enqueue(); }

  // Bytes of the device's memory that this plan holds now: constants, and the states of concurrent runs; 0 for a CPU.
  virtual uint64_t device_bytes() const { return 0; }

  const Plan& plan() const { return *plan_; }

 protected:
  [[noreturn]] static void refuse_enqueue();
  [[noreturn]] static void refuse_run_at();
  explicit Executor(std::shared_ptr<const Plan> plan)
      : plan_(std::move(plan)), outputs_(std::make_shared<OutputPool>(plan_->outputs.size())) {}
  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<OutputPool> outputs_;
};

// Whether the plan was made for a GPU.
bool runs_on_gpu(const Plan& plan);

// The executor of the plan's kind of device; `device` is the number of the GPU. Loads the plan's kernels. `interpreter`
// may be null when the plan has no reference steps. Kernels that are not in the plan's own library are looked for in
// `libraries` (CPU only). Throws kDamagedArtefact, kDevice, kOutOfMemory.
std::unique_ptr<Executor> make_executor(std::shared_ptr<const Plan> plan, std::shared_ptr<ThreadPool> pool,
                                        std::shared_ptr<const Interpreter> interpreter, int device = 0,
                                        const Libraries& libraries = {});

}  // namespace heddle::runtime
