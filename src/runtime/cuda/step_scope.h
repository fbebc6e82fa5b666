#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::runtime {

// Which of the plan's outermost steps this thread puts onto a stream or captures right now: what a profiler ties the
// device's work to. -1: none.
int64_t cuda_step_of_thread();

class CudaStepScope {
 public:
  explicit CudaStepScope(size_t step);
  ~CudaStepScope();
  CudaStepScope(const CudaStepScope&) = delete;
  CudaStepScope& operator=(const CudaStepScope&) = delete;

 private:
  int64_t outer_;
};

}  // namespace heddle::runtime
