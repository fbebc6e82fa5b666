#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/thread/thread_pool.h"
#include "runtime/cuda/program.h"
#include "runtime/executor.h"

namespace heddle::runtime {

// The state of one run at a time: memory, a stream, and the plan bound to them and captured as graphs. A plan that
// consists of kernels only is one graph.
class CudaRunState {
 public:
  CudaRunState(CudaCode& code, const Plan& plan, const Interpreter* interpreter, ThreadPool& pool, OutputPool& outputs);
  ~CudaRunState();
  CudaRunState(const CudaRunState&) = delete;
  CudaRunState& operator=(const CudaRunState&) = delete;

  std::vector<Tensor> run(std::span<const Tensor> inputs, std::span<const Tensor> into = {});
  // Step by step, without graphs.
  std::vector<Tensor> run_observed(std::span<const Tensor> inputs, const Executor::Observer& observe,
                                   std::span<const Tensor> into);
  // Device times of runs, without copies of inputs and outputs. `cold`: the L2 is overwritten before each run.
  std::vector<double> time(std::span<const Tensor> inputs, int runs, bool cold);
  // The same; `before` enqueues work on the stream ahead of each run.
  std::vector<double> time(std::span<const Tensor> inputs, int runs,
                           const std::function<void(CudaDriver::Handle stream)>& before);

  // Device times of each outermost step: medians over runs. A step on the host counts 0.
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
  std::vector<std::byte*> pinned_inputs_, pinned_outputs_;  // null: not copied
  size_t pinned_bytes_ = 0, graphs_ = 0;
  bool direct_ = false;  // runs without graphs

  // State of the run in progress.
  std::span<const Tensor> inputs_;
  std::vector<Tensor> uploads_;  // results of host calls, until their copies are done
};

}  // namespace heddle::runtime
