#pragma once

#include "codegen/codegen.h"
#include "codegen/cuda_functor.h"
#include "schedule/contraction.h"
#include "schedule/cuda_tile.h"

namespace heddle::codegen {

// A contraction for a GPU: an instance of a template (tile/kernel/cuda) with its operands, its epilogue and launches.
KernelSource emit_cuda_contraction(const schedule::KernelDesc& desc, const schedule::ContractionDesc& contraction,
                                   const schedule::Config& config, const Target& target);

// Which operands say where their lines lie in memory: those whose lines begin at any element, for kernels that shift
// them (load_shifted.h); or all (gemm_lines.h).
enum class LinesOf : uint8_t { kNone, kShifted, kAll };

// A product as the kernels over views take it, with the text and blocks of its operands.
schedule::CudaTileProblem written_problem(const schedule::KernelDesc& desc, const schedule::Epilogue& epilogue,
                                          const schedule::CudaGemmDesc& gemm, LinesOf as_lines);

}  // namespace heddle::codegen
