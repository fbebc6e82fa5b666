#pragma once

#include "codegen/codegen.h"
#include "schedule/region/separate.h"

namespace heddle::codegen {

// An instantiation of tile/kernel/cpu/scatter.h or select.h.
KernelSource emit_separate(const schedule::KernelDesc& desc, const schedule::SeparateDesc& body,
                           const schedule::Config& config, bool marked = false);

}  // namespace heddle::codegen
