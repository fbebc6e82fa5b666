#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/ops.h"
#include "schedule/product/contraction.h"

namespace heddle::ops {

// A kernel's operands are, in this order: A, B, D, the operands of the epilogue, and the results of the epilogue's
// reductions.
inline constexpr uint32_t kOperandD = 2, kFirstOperand = 3;

struct LoweredEpilogue {
  schedule::Epilogue epilogue;
  std::vector<schedule::Operand> operands;  // all operands of the problem, used or not
};

// Lowers the epilogue expression of a problem. In the expression, "x" is the accumulator and other names are operands.
// Computation is in f32, or in f64 if the accumulator is f64. "" is the identity. The problem's dimensions and strides
// must be resolved.
//
// Throws kInvalidArgument if the text does not parse, if it has an unknown operand or function (the message lists the
// known ones), a wrong number of arguments, or a condition where a value is expected, and if two operands have the same
// name. Throws kUnsupportedType.
LoweredEpilogue lower_epilogue(const GemmProblem& problem, DType accumulator);

// The name of a kind of reduction: "sum", "prod", "max" or "min".
const char* kind_name(Reduction::Kind kind);

// The names of the functions that an epilogue may call, as a list: "abs, acos, ..., gelu, ...".
std::string epilogue_functions();

// Computes the value that the epilogue stores to an element of D, in double precision. This is the reference for tests
// and for `heddle kernel gemm --verify`. `load` returns the element at a position of a kernel operand.
double evaluate_epilogue(const schedule::Epilogue& epilogue, int64_t batch, int64_t row, int64_t column,
                         double accumulator, const std::function<double(uint32_t operand, int64_t position)>& load);

}  // namespace heddle::ops
