#pragma once

#include <cstdint>
#include <vector>

#include "schedule/kernel_desc.h"
#include "target/cuda_launch.h"

namespace heddle::schedule {

// The launches of a kernel on a GPU, in order, and the memory that it needs besides its operands
// (codegen::KernelSource). As long as functions have no symbol, launches of products name them "gemm", "gemm_reduce".
struct KernelLaunches {
  std::vector<CudaLaunch> launches;
  int64_t workspace_bytes = 0;
  int64_t counter_bytes = 0;  // zero before the first launch and after the last
};

// All decisions about a kernel: the input of code generation. Holds references to the description and the
// configuration.
struct KernelPlan : KernelLaunches {
  const KernelDesc& desc;
  const Config& config;
  // Its functions wait for the previous launch (tile/arch/sm90/dependent.h), whether or not their own launch is early.
  bool waits = false;
};

// Sets the launches of a kernel on a GPU and which of them may begin early.
void plan_cuda_launches(KernelPlan& plan, const CudaTarget& target);

// Makes the plan of a kernel. On a CPU it has no launches.
KernelPlan plan_kernel(const KernelDesc& desc, const Config& config, const Target& target);
inline KernelPlan plan_kernel(const ScheduledKernel& kernel, const Target& target) {
  return plan_kernel(kernel.desc, kernel.config, target);
}

}  // namespace heddle::schedule
