#pragma once

#include "codegen/codegen.h"
#include "codegen/product/cuda/functor.h"
#include "schedule/product/contraction.h"
#include "schedule/product/cuda/tile.h"

namespace heddle::codegen {

// A contraction for a GPU: an instance of a template (tile/kernel/cuda) with its operands, its epilogue and launches.
KernelSource emit_cuda_contraction(const schedule::KernelDesc& desc, const schedule::ContractionDesc& contraction,
                                   const schedule::Config& config, const Target& target);

// A product as the kernels over views take it, with the text and blocks of its operands.
schedule::CudaTileProblem written_problem(const schedule::ProductTask& task, schedule::LinesOf as_lines);

}  // namespace heddle::codegen
