#pragma once

#include "codegen/codegen.h"
#include "schedule/region/standalone.h"

namespace heddle::codegen {

// Emits a kernel that instantiates tile/kernel/cpu/scatter.h or select.h.
KernelSource emit_cpu_standalone(const schedule::KernelDesc& desc, const schedule::StandaloneDesc& body,
                                 const schedule::Config& config, bool marked = false);

}  // namespace heddle::codegen
