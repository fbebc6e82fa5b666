#include "runtime/cuda/step_scope.h"

namespace heddle::runtime {
namespace {

thread_local int64_t step_of_thread = -1;

}  // namespace

int64_t cuda_step_of_thread() {
  return step_of_thread;
}

CudaStepScope::CudaStepScope(size_t step) : outer_(step_of_thread) {
  step_of_thread = static_cast<int64_t>(step);
}

CudaStepScope::~CudaStepScope() {
  step_of_thread = outer_;
}

}  // namespace heddle::runtime
