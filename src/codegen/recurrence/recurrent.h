#pragma once

#include "codegen/codegen.h"
#include "schedule/recurrence/recurrent.h"

namespace heddle::codegen {

// The text of a kernel that runs all steps of its loops, of the pieces of tile/kernel/cuda/recurrence/recurrent.h, and
// its launch.
KernelSource emit_cuda_recurrence(const schedule::KernelPlan& plan, const schedule::RecurrentDesc& body,
                                  const CudaTarget& target);

}  // namespace heddle::codegen
