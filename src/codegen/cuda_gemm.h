#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/cuda_epilogue.h"
#include "schedule/cuda_gemm.h"
#include "schedule/cuda_tile.h"

namespace heddle::codegen {

// An operand of an epilogue besides the accumulator.
struct CudaEpilogueOperand {
  enum class Kind : uint8_t { kColumn, kRow, kMatrix };  // one element per column of D, per row, per element
  std::string name;
  Kind kind = Kind::kColumn;
  DType dtype = DType::kF16;
};

// A chain of steps on the accumulator: bias (a column vector), row_bias, residual (a matrix of D's shape), scale=S, and
// relu, gelu, silu, hardswish, softplus, sigmoid, tanh.
struct CudaEpilogue {
  std::vector<CudaEpilogueOperand> operands;
  std::vector<std::string> steps;

  bool empty() const { return steps.empty(); }
  // "bias,gelu" with operands of `dtype`; "" is the identity. Throws kInvalidArgument on an unknown step.
  static CudaEpilogue parse(std::string_view text, DType dtype);
};

// The epilogue of a kernel whose operands are A, B, D, the workspace and the epilogue's own (dense).
struct GemmEpilogue {
  schedule::Epilogue epilogue;
  std::vector<schedule::Operand> operands;
};
GemmEpilogue lower(const CudaEpilogue& epilogue, const schedule::CudaGemmProblem& problem);

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
