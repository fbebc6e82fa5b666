#pragma once

#include "codegen/codegen.h"
#include "schedule/region/standalone.h"

namespace heddle::codegen {

// Emits an instantiation of tile/kernel/cuda/standalone/scatter.h or select.h. Sizes are arguments of the kernel, so
// nodes of different shapes share it.
KernelSource emit_cuda_standalone(const schedule::KernelPlan& plan, const schedule::StandaloneDesc& body);

}  // namespace heddle::codegen
