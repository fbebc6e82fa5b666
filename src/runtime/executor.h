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

// Runs a plan. Thread-safe: each run uses a state (arena, scratch, pointers) from a free list. The number of states
// grows to the largest number of concurrent runs.
class Executor {
 public:
  virtual ~Executor() = default;

  // Called after each outermost step with its index. `read` copies a buffer that the step has read or written.
  using Observer = std::function<void(size_t step, const std::function<Tensor(uint32_t buffer)>& read)>;

  // Runs the plan. `inputs` are in the order of Plan::inputs; the caller has checked that dtypes and byte sizes match.
  // Returns tensors in the order of Plan::outputs, owned by the caller.
  //
  // If `into` is not empty, the outputs are stored in its tensors, which must have the plan's dtypes and byte sizes. A
  // tensor of `into` must not overlap an input or another output. There is one exception: an output that is aliased to
  // an input may start at the first byte of this input. Throws kOutOfMemory, kDevice, or what a reference step throws.
  virtual std::vector<Tensor> run(std::span<const Tensor> inputs, const Observer& observe = {},
                                  std::span<const Tensor> into = {}) const = 0;

  // Runs on a CPU in memory that the caller owns and has checked. `addresses` lists inputs, then outputs. The rules for
  // `into` in run() apply to the outputs. Throws kInvalidArgument for a GPU.
  virtual void run_at(std::span<void* const> /*addresses*/) const { refuse_run_at(); }

  // The bytes of host memory that each additional concurrent run allocates, outputs included.
  virtual int64_t bytes_per_run() const = 0;

  // The device time in seconds of each of `runs` runs, without copies between host and device. Empty for a CPU. `cold`:
  // before each run, writes other memory until the caches hold none of the plan's data.
  virtual std::vector<double> device_seconds(std::span<const Tensor>, int /*runs*/, bool /*cold*/ = false) const {
    return {};
  }

  // The device time in seconds of each outermost step. Each value is the median over `runs` runs in which steps follow
  // one another as in run(). 0 for steps that do nothing or wait for the host. Empty for a CPU.
  virtual std::vector<double> step_seconds(std::span<const Tensor>, int /*runs*/) const { return {}; }

  // Calls `use` with a function `run`. run(n) makes n runs one after another and returns when they are done. On a GPU,
  // inputs are copied to the device once, before `use` is called, and outputs stay on the device. A run that overwrites
  // an input leaves the next run the new contents.
  using Repeat = std::function<void(int64_t runs)>;
  virtual void repeat(std::span<const Tensor> inputs, const std::function<void(const Repeat&)>& use) const;

  // The bytes of device memory that enqueue() needs besides inputs and outputs. Also prepares for enqueue().
  virtual size_t workspace_bytes() const { refuse_enqueue(); }
  // Enqueues a run on a stream of the caller, in memory of the caller (runtime/cuda/enqueuer.h). `addresses`: inputs,
  // outputs, workspace. Throws kInvalidArgument for a CPU, kUnsupportedOperator for plans whose runs need the host.
  virtual void enqueue(std::vector<uint64_t> /*addresses*/, void* /*stream*/) const { refuse_enqueue(); }

  // The bytes of device memory that this plan holds now: constants, and the states of concurrent runs. 0 for a CPU.
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

// True if the plan was made for a GPU.
bool runs_on_gpu(const Plan& plan);
// True if that GPU is one of AMD.
bool made_for_hip(const Plan& plan);

struct ExecutorOptions {
  int device = 0;  // the number of the GPU
  // Kernels missing from the plan's library are looked up in these (CPU only).
  Libraries libraries = {};
  // GPU only: the first run(), not make_executor(), allocates the device memory of run(). enqueue() needs none of it.
  bool callers_memory = false;
};

// Creates the executor for the plan's kind of device and loads the plan's kernels. `interpreter` may be null if the
// plan has no reference steps. Throws kDamagedArtefact, kDevice, kOutOfMemory.
std::unique_ptr<Executor> make_executor(std::shared_ptr<const Plan> plan, std::shared_ptr<ThreadPool> pool,
                                        std::shared_ptr<const Interpreter> interpreter,
                                        const ExecutorOptions& options = {});

}  // namespace heddle::runtime
