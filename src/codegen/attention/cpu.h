#pragma once

#include "codegen/codegen.h"
#include "schedule/attention/attention.h"

namespace heddle::codegen {

// Emits the CPU kernel of an attention group. codegen/region/cpu/stitch.h explains `marked`.
KernelSource emit_cpu_attention(const schedule::KernelPlan& plan, const schedule::AttentionDesc& attention,
                                const Target& target, bool marked);

}  // namespace heddle::codegen
