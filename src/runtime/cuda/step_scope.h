#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::runtime {

// Returns the outermost step of the plan that this thread is enqueueing or capturing; -1 if there is none. A profiler
// attributes device work to this step.
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
