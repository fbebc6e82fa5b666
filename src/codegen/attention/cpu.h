#pragma once

#include "codegen/codegen.h"
#include "schedule/attention/attention.h"

namespace heddle::codegen {

// Emits the kernel of an attention group for a CPU. `marked`: as for all CPU emitters (codegen/region/cpu/stitch.h).
KernelSource emit_cpu_attention(const schedule::KernelPlan& plan, const schedule::AttentionDesc& attention,
                                const Target& target, bool marked);

}  // namespace heddle::codegen
