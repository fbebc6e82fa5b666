#pragma once

#include "codegen/codegen.h"
#include "schedule/sequence/sequence.h"

namespace heddle::codegen {

// Emits consecutive kernels of a plan as one launch.
KernelSource emit_cuda_sequence(const schedule::KernelPlan& plan, const schedule::SequenceDesc& sequence,
                                const GpuTarget& target);

}  // namespace heddle::codegen
