#pragma once

#include "codegen/codegen.h"
#include "schedule/attention/attention.h"

namespace heddle::codegen {

// Emits the GPU kernel of an attention group.
KernelSource emit_cuda_attention(const schedule::KernelPlan& plan, const schedule::AttentionDesc& attention,
                                 const CudaTarget& target);

}  // namespace heddle::codegen
