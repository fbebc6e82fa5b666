#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/thread/thread_pool.h"
#include "runtime/cuda/program.h"
#include "runtime/executor.h"

namespace heddle::runtime {

// The state of a run: memory, a stream, and the plan, which is bound to both and captured as CUDA graphs. At most one
// run uses a state at a time. A plan that consists only of kernels is captured as one graph.
class CudaRunState {
 public:
  CudaRunState(CudaCode& code, const Plan& plan, const Interpreter* interpreter, ThreadPool& pool, OutputPool& outputs);
  ~CudaRunState();
  CudaRunState(const CudaRunState&) = delete;
  CudaRunState& operator=(const CudaRunState&) = delete;

  std::vector<Tensor> run(std::span<const Tensor> inputs, std::span<const Tensor> into = {});
  // Runs the plan step by step, without graphs, and calls `observe` for the steps.
  std::vector<Tensor> run_observed(std::span<const Tensor> inputs, const Executor::Observer& observe,
                                   std::span<const Tensor> into);
  void repeat(std::span<const Tensor> inputs, const std::function<void(const Executor::Repeat&)>& use);
  // The device time of each of `runs` runs, without copies of inputs and outputs. `before` enqueues work ahead of each.
  using Before = std::function<void(CudaDriver::Handle stream)>;
  std::vector<double> time(std::span<const Tensor> inputs, int runs, const Before& before);

  // The device time of each outermost step: the median over `runs` runs. 0 for a step on the host.
  std::vector<double> time_steps(std::span<const Tensor> inputs, int runs);

  size_t pinned_bytes() const { return pinned_bytes_; }
  size_t device_bytes() const { return memory_.bytes(); }
  size_t graphs() const { return graphs_; }

 private:
  void capture(CudaProgram& program);
  void send_inputs(std::span<const Tensor> inputs);
  std::vector<Tensor> fetch_outputs(std::span<const Tensor> into);

  void execute(const CudaProgram& program);
  void execute(const CudaSegment& segment);
  void execute(const CudaHostCall& call);
  void execute(const std::unique_ptr<CudaLoop>& loop);
  void execute(const std::unique_ptr<CudaBranch>& branch);
  void enqueue_copies(std::span<const CudaCopy> copies) const;
  Tensor read(uint32_t buffer, const CudaValue& value) const;
  template <typename T>
  T fetch(uint64_t address);
  void copy_bytes(void* to, const void* from, size_t bytes) const;

  const Plan& plan_;
  const Interpreter* interpreter_;
  ThreadPool& pool_;
  OutputPool& output_pool_;
  const CudaContext& context_;
  CudaStream stream_;
  CudaRunMemory memory_;
  CudaBinding binding_;
  std::unique_ptr<CudaHostBuffer> pinned_;
  std::vector<std::byte*> pinned_inputs_, pinned_outputs_;  // null: this one is not copied
  size_t pinned_bytes_ = 0, graphs_ = 0;
  bool direct_ = false;  // runs without graphs

  // State of the run in progress.
  std::span<const Tensor> inputs_;
  std::vector<Tensor> uploads_;  // results of host calls, kept until they are copied to the device
};

}  // namespace heddle::runtime
