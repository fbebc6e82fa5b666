#pragma once

#include "codegen/codegen.h"
#include "schedule/region/separate.h"

namespace heddle::codegen {

// An instantiation of tile/kernel/cuda/standalone/scatter.h or select.h. Sizes are arguments: nodes of other shapes
// share it.
KernelSource emit_cuda_separate(const schedule::KernelDesc& desc, const schedule::SeparateDesc& body,
                                const schedule::Config& config);

}  // namespace heddle::codegen
