#pragma once

#include "schedule/back_to_back/back_to_back.h"
#include "schedule/product/cuda/family.h"

namespace heddle::schedule {

// The two products of a GPU kernel (tile/kernel/cuda/back_to_back.h).
struct BackToBackTasks {
  ProductTask first, second;

  int64_t columns0(const CudaBackToBackConfig& config) const;  // of D0 in a block
  int64_t steps(const CudaBackToBackConfig& config) const;     // of columns of D1
};
BackToBackTasks tasks_of(const CudaBackToBackDesc& desc, const std::vector<Operand>& operands);

// The launch, without the arguments of its operands and functors.
KernelLaunches plan_launches(const CudaBackToBackDesc& desc, const std::vector<Operand>& operands,
                             const CudaBackToBackConfig& config);

// All configurations that fit registers and shared memory, the least predicted time first. Those that cannot run come
// last, each with its reason.
std::vector<CudaCandidate> back_to_back_candidates(const BackToBackTasks& tasks, const CudaTarget& target);

// Back to back on a GPU.
const BackToBackBackend& cuda_back_to_back();

}  // namespace heddle::schedule
