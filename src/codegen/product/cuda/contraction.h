#pragma once

#include "codegen/codegen.h"
#include "schedule/product/contraction.h"

namespace heddle::codegen {

// A contraction for a GPU: an instance of a template (tile/kernel/cuda) with its operands, its epilogue and launches.
KernelSource emit_cuda_contraction(const schedule::KernelPlan& plan, const schedule::ContractionDesc& contraction);

}  // namespace heddle::codegen
