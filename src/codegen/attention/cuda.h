#pragma once

#include "codegen/codegen.h"
#include "codegen/cuda_phase.h"
#include "schedule/attention/attention.h"

namespace heddle::codegen {

// Emits the GPU kernel of an attention group.
KernelSource emit_cuda_attention(const schedule::KernelPlan& plan, const schedule::AttentionDesc& attention,
                                 const GpuTarget& target);
// An attention by warps, whose blocks are units, as a phase of a sequence.
CudaPhase attention_phase(const schedule::KernelPlan& plan, const schedule::AttentionDesc& attention);

}  // namespace heddle::codegen
