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

// Lowers the problem's epilogue: "x" is the accumulator, other names are operands, and computation is in f32 (in f64 if
// the accumulator is f64). "" is the identity. The problem's dimensions and strides must be resolved. Throws
// kInvalidArgument for text that does not parse, an unknown operand or function (the message lists the known ones), a
// wrong number of arguments, a condition where a value belongs, or operands that share a name. Throws kUnsupportedType.
LoweredEpilogue lower_epilogue(const GemmProblem& problem, DType accumulator);

// "sum", "prod", "max", "min".
const char* kind_name(Reduction::Kind kind);

// The names of functions that an epilogue may call: "abs, acos, ..., gelu, ...".
std::string epilogue_functions();

// The value stored to D, in double: the reference for tests and for `heddle kernel gemm --verify`. `load` returns the
// element of a kernel operand at a position.
double evaluate_epilogue(const schedule::Epilogue& epilogue, int64_t batch, int64_t row, int64_t column,
                         double accumulator, const std::function<double(uint32_t operand, int64_t position)>& load);

}  // namespace heddle::ops
