#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/cuda/enqueuer.h"
#include "runtime/cuda/run_state.h"
#include "runtime/executor.h"

namespace heddle::runtime {

// Runs plans on a GPU. Concurrent runs share one copy of the constants on the device, and each run has its own state.
// If the device has no memory for another state, a run waits until another run releases its state.
class CudaExecutor : public Executor {
 public:
  // `callers_memory`: see ExecutorOptions.
  CudaExecutor(std::shared_ptr<const Plan> plan, std::shared_ptr<ThreadPool> pool,
               std::shared_ptr<const Interpreter> interpreter, int device, bool callers_memory = false);

  std::vector<Tensor> run(std::span<const Tensor> inputs, const Observer& observe = {},
                          std::span<const Tensor> into = {}) const override;
  int64_t bytes_per_run() const override;
  std::vector<double> step_seconds(std::span<const Tensor> inputs, int runs) const override;
  std::vector<double> device_seconds(std::span<const Tensor> inputs, int runs, bool cold = false) const override;
  void repeat(std::span<const Tensor> inputs, const std::function<void(const Repeat&)>& use) const override;
  // Like device_seconds() above, but `before` enqueues work on the stream ahead of each run.
  std::vector<double> device_seconds(std::span<const Tensor> inputs, int runs,
                                     const std::function<void(CudaDriver::Handle stream)>& before) const;
  uint64_t device_bytes() const override;
  size_t workspace_bytes() const override { return enqueuer().workspace_bytes(); }
  void enqueue(std::vector<uint64_t> addresses, void* stream) const override {
    enqueuer().enqueue(std::move(addresses), stream);
  }

  // The minimum number of CUDA graphs that a run launches: 1 for a plan that consists only of kernels. 0 before the
  // first state is made.
  size_t graphs() const { return graphs_; }

 private:
  const CudaEnqueuer& enqueuer() const;  // created on first use
  std::unique_ptr<CudaRunState> make_state() const;
  std::unique_ptr<CudaRunState> take_state() const;
  template <typename Use>
  auto with_state(Use&& use) const;

  std::shared_ptr<ThreadPool> pool_;
  std::shared_ptr<const Interpreter> interpreter_;
  std::shared_ptr<const CudaContext> context_;
  std::shared_ptr<CudaCode> code_;
  mutable std::atomic<size_t> graphs_ = 0, pinned_bytes_ = 0, state_bytes_ = 0;  // of each state
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable std::vector<std::unique_ptr<CudaRunState>> free_;
  mutable size_t taken_ = 0;
  mutable uint64_t given_back_ = 0;  // number of states that have been given back or destroyed so far
  mutable bool making_ = false;
  mutable std::once_flag enqueuer_made_;
  mutable std::unique_ptr<const CudaEnqueuer> enqueuer_;
};

}  // namespace heddle::runtime
