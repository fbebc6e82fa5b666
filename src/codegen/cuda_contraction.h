#pragma once

#include "codegen/codegen.h"
#include "codegen/cuda_functor.h"
#include "schedule/contraction.h"

namespace heddle::codegen {

// A contraction for a GPU: an instance of a template (tile/kernel/cuda) with its operands, its epilogue and launches.
KernelSource emit_cuda_contraction(const schedule::KernelDesc& desc, const schedule::ContractionDesc& contraction,
                                   const schedule::Config& config, const Target& target);

// An operand of a product as the struct `name` that the templates take (tile/kernel/cuda/gemm_sm80.h): a view of a
// matrix or of images, or an expression. `lines`: rows of A or columns of B.
CudaFunctor cuda_operand(const schedule::KernelDesc& desc, const schedule::CudaGemmDesc& gemm,
                         const schedule::CudaOperand& operand, int64_t lines, const char* name);

}  // namespace heddle::codegen
