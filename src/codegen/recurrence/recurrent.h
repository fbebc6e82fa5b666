#pragma once

#include "codegen/codegen.h"
#include "schedule/recurrence/recurrent.h"

namespace heddle::codegen {

// Emits a kernel that runs all time steps of a recurrence, and its launch. The text is assembled from the building
// blocks in tile/kernel/cuda/recurrence/recurrent.h.
KernelSource emit_cuda_recurrence(const schedule::KernelPlan& plan, const schedule::RecurrentDesc& body,
                                  const CudaTarget& target);

}  // namespace heddle::codegen
