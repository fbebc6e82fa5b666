#pragma once

#include <cstdint>
#include <vector>

#include "schedule/kernel_desc.h"
#include "target/cuda_launch.h"

namespace heddle::schedule {

// The launches of a GPU kernel, in order, and the memory needed besides its operands (codegen::KernelSource). Until
// functions have symbols, launches of products refer to the functions as "gemm" and "gemm_reduce".
struct KernelLaunches {
  std::vector<CudaLaunch> launches;
  int64_t workspace_bytes = 0;
  int64_t counter_bytes = 0;  // must be zero before the first launch; is zero again after the last
};

// All decisions about a kernel: the input of code generation. Refers to the description and the configuration, which
// must outlive the plan.
struct KernelPlan : KernelLaunches {
  const KernelDesc& desc;
  const Config& config;
  // True if the kernel's functions wait for the previous launch (tile/arch/sm90/dependent.h), even if their own launch
  // does not begin before the previous launch ends.
  bool waits = false;
};

// Sets the launches of a GPU kernel, and which of them may begin before the previous launch ends.
void plan_gpu_launches(KernelPlan& plan, const GpuTarget& target);

// Makes the plan of a kernel. The plan of a CPU kernel has no launches.
KernelPlan plan_kernel(const KernelDesc& desc, const Config& config, const Target& target);
inline KernelPlan plan_kernel(const ScheduledKernel& kernel, const Target& target) {
  return plan_kernel(kernel.desc, kernel.config, target);
}

}  // namespace heddle::schedule
