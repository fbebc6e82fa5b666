#pragma once

#include "codegen/codegen.h"
#include "schedule/back_to_back/back_to_back.h"

namespace heddle::codegen {

// Generates the GPU kernel of two back-to-back products: an instance of tile/kernel/cuda/back_to_back.h.
KernelSource emit_cuda_back_to_back(const schedule::KernelPlan& plan, const schedule::CudaBackToBackDesc& desc);

}  // namespace heddle::codegen
