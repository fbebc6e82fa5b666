#pragma once

#include <cstdint>
#include <vector>

#include "schedule/kernel_desc.h"
#include "target/cuda_launch.h"

namespace heddle::schedule {

// The launches of a kernel on a GPU, in order, and the memory that it has beside its operands
// (codegen::KernelSource). Where functions have no symbol yet, launches of products name them "gemm", "gemm_reduce".
struct KernelLaunches {
  std::vector<CudaLaunch> launches;
  int64_t workspace_bytes = 0;
  int64_t counter_bytes = 0;  // zero before the first launch and behind the last
};

// All that is decided about a kernel: what code generation makes its text of. Refers to what it was made of.
struct KernelPlan : KernelLaunches {
  const KernelDesc& desc;
  const Config& config;
  // Its functions wait for the launch in front of theirs (tile/arch/sm90/dependent.h), whether or not theirs is early.
  bool waits = false;
};

// The launches of a kernel on a GPU, and which of them may begin early.
void plan_cuda_launches(KernelPlan& plan, const CudaTarget& target);

// On a CPU there are no launches.
KernelPlan plan_kernel(const KernelDesc& desc, const Config& config, const Target& target);
inline KernelPlan plan_kernel(const ScheduledKernel& kernel, const Target& target) {
  return plan_kernel(kernel.desc, kernel.config, target);
}

}  // namespace heddle::schedule
