#pragma once

#include <string>
#include <vector>

#include "codegen/product/cuda/gemm.h"
#include "schedule/product/cuda/tile.h"

namespace heddle::codegen {

// One instance of the kernels over views as text. Its kernels are called as schedule::make_launches() calls them,
// `symbol` in place of "gemm"; the functor's block is the last argument of the launch `epilogue_launch`.
CudaGemmUnit tile_unit(const schedule::CudaTileProblem& problem, const schedule::CudaTileConfig& config,
                       const schedule::Epilogue& epilogue, const std::vector<schedule::Operand>& operands,
                       const std::string& symbol = "gemm");

}  // namespace heddle::codegen
