#pragma once

#include "schedule/back_to_back/back_to_back.h"
#include "schedule/product/cuda/family.h"

namespace heddle::schedule {

// The two products that one GPU kernel computes (tile/kernel/cuda/back_to_back.h).
struct BackToBackTasks {
  ProductTask first, second;

  int64_t columns0(const CudaBackToBackConfig& config) const;  // columns of D0 per block
  int64_t steps(const CudaBackToBackConfig& config) const;     // steps over the columns of D1
};
BackToBackTasks tasks_of(const CudaBackToBackDesc& desc, const std::vector<Operand>& operands);

// Plans the launch without the arguments for operands and functors, which are added later.
KernelLaunches plan_launches(const CudaBackToBackDesc& desc, const std::vector<Operand>& operands,
                             const CudaBackToBackConfig& config);

// Returns all configurations, best prediction first. Configurations that cannot run, such as those that do not fit in
// registers or shared memory, are last, each with the reason.
std::vector<CudaCandidate> back_to_back_candidates(const BackToBackTasks& tasks, const GpuTarget& target);

// The GPU backend for back-to-back products.
const BackToBackBackend& cuda_back_to_back();

}  // namespace heddle::schedule
