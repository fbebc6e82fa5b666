#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schedule/cuda_gemm.h"

namespace heddle::codegen {

// An operand of an epilogue besides the accumulator.
struct CudaEpilogueOperand {
  enum class Kind : uint8_t { kColumn, kRow, kMatrix };  // one element per column of D, per row, per element
  std::string name;
  Kind kind = Kind::kColumn;
  DType dtype = DType::kF16;
};

// A chain of steps on the accumulator x: bias (x + column vector), row_bias, residual (x + matrix of D's shape),
// scale=S, and relu, gelu, silu, hardswish, softplus, sigmoid, tanh.
struct CudaEpilogue {
  std::vector<CudaEpilogueOperand> operands;
  std::vector<std::string> steps;  // expressions of x, operand i of this element is `o<i>`

  bool empty() const { return steps.empty(); }
  // "bias,gelu" with operands of `dtype`; "" is the identity. Throws kInvalidArgument on an unknown step.
  static CudaEpilogue parse(std::string_view text, DType dtype);
};

// The epilogue's argument block: per operand a pointer, the stride of a row and of a batch, 8 bytes each; 8 bytes where
// there is no operand.
std::vector<uint8_t> epilogue_block(const CudaEpilogue& epilogue, const schedule::CudaGemmProblem& problem);

// The unit with every kernel that make_launches() names.
std::string gemm_unit(const schedule::CudaGemmProblem& problem, const schedule::CudaGemmConfig& config,
                      const CudaEpilogue& epilogue);

}  // namespace heddle::codegen
