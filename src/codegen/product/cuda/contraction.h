#pragma once

#include "codegen/codegen.h"
#include "codegen/cuda_phase.h"
#include "schedule/product/contraction.h"

namespace heddle::codegen {

// Generates the GPU kernel of a contraction: an instance of a template in tile/kernel/cuda, with its operands, epilogue
// and launches.
KernelSource emit_cuda_contraction(const schedule::KernelPlan& plan, const schedule::ContractionDesc& contraction);
// A product by `skinny`, whose blocks are tiles, as a phase of a sequence.
CudaPhase product_phase(const schedule::KernelPlan& plan, const schedule::ContractionDesc& contraction);

}  // namespace heddle::codegen
