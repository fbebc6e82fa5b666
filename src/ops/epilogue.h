#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/ops.h"
#include "schedule/product/contraction.h"

namespace heddle::ops {

// The operands of a kernel: A, B, D, then those of its epilogue, then the results of its reductions.
inline constexpr uint32_t kOperandD = 2, kFirstOperand = 3;

struct LoweredEpilogue {
  schedule::Epilogue epilogue;
  std::vector<schedule::Operand> operands;  // every operand given, used or not
};

// The meaning of the problem's epilogue: "x" is the accumulator, other names are operands, computation is in f32 (in
// f64 where the accumulator is). "" is the identity. The problem's dimensions and strides are resolved. Throws
// kInvalidArgument on text that does not parse, an unknown operand or function (it lists those that exist), a wrong
// number of arguments, a condition where a value belongs, operands that repeat a name; kUnsupportedType.
LoweredEpilogue lower_epilogue(const GemmProblem& problem, DType accumulator);

// "sum", "prod", "max", "min".
const char* kind_name(Reduction::Kind kind);

// "abs, acos, ..., gelu, ...": what may be called.
std::string epilogue_functions();

// The value that is stored to D, in double: the reference of tests and of `heddle kernel gemm --verify`. `load` gives
// the element of an operand of the kernel at a position.
double evaluate_epilogue(const schedule::Epilogue& epilogue, int64_t batch, int64_t row, int64_t column,
                         double accumulator, const std::function<double(uint32_t operand, int64_t position)>& load);

}  // namespace heddle::ops
