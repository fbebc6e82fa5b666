#pragma once

#include "codegen/codegen.h"
#include "codegen/product/cuda/functor.h"
#include "schedule/product/contraction.h"
#include "schedule/product/cuda/tile.h"

namespace heddle::codegen {

// A contraction for a GPU: an instance of a template (tile/kernel/cuda) with its operands, its epilogue and launches.
KernelSource emit_cuda_contraction(const schedule::KernelDesc& desc, const schedule::ContractionDesc& contraction,
                                   const schedule::Config& config, const Target& target);

// Which operands say where their lines lie in memory: those whose lines begin at any element, for kernels that shift
// them (load_shifted.h); or all (tile/kernel/cuda/gemm/unaligned.h).
enum class LinesOf : uint8_t { kNone, kShifted, kAll };

// A product as the kernels over views take it, with the text and blocks of its operands.
schedule::CudaTileProblem written_problem(const schedule::KernelDesc& desc, const schedule::Epilogue& epilogue,
                                          const schedule::CudaGemmDesc& gemm, LinesOf as_lines);

}  // namespace heddle::codegen
