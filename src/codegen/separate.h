#pragma once

#include "codegen/codegen.h"
#include "schedule/separate.h"

namespace heddle::codegen {

// An instantiation of tile/kernel/cpu/scatter.h or select.h.
KernelSource emit_separate(const schedule::SeparateDesc& body, const schedule::Config& config);

}  // namespace heddle::codegen
