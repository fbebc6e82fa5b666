#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/cuda_epilogue.h"
#include "schedule/cuda_gemm.h"
#include "schedule/cuda_tile.h"

namespace heddle::codegen {

// One instance as text. Its kernels are called as make_launches() calls them, `symbol` in place of "gemm". The
// functor's block is the last argument of the launch `epilogue_launch`. Without `returned` (which store's value the
// kernel writes to D where the configuration's store is kTma) that is an error for kTma.
struct CudaGemmUnit {
  std::vector<std::string> includes;
  std::string text;
  CudaFunctor epilogue;
  // Includes and text.
  std::string source() const;
};
CudaGemmUnit gemm_unit(const schedule::CudaGemmProblem& problem, const schedule::CudaGemmConfig& config,
                       const schedule::Epilogue& epilogue, const std::vector<schedule::Operand>& operands,
                       const std::string& symbol = "gemm");
// The same for a problem with views, of these operands.
CudaGemmUnit gemm_views_unit(const schedule::CudaGemmProblem& problem, const schedule::CudaGemmConfig& config,
                             const schedule::CudaTileProblem& views, const schedule::Epilogue& epilogue,
                             const std::vector<schedule::Operand>& operands, const std::string& symbol);

}  // namespace heddle::codegen
