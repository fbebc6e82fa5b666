#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heddle/dtype.h"
#include "ir/op.h"

// C++ text for types, numbers and elementwise ops, for kernels of models and kernels of the tile language.
namespace heddle::codegen {

std::string_view storage_type(DType dtype);  // "tile::half"; bool: "uint8_t"

// The literal of a number. `dtype` is a type that kernels compute in: f32, f64 or an integer type. A u64 is passed as
// the int64_t with the same bits.
std::string literal(DType dtype, double value);   // "0.5f"
std::string literal(DType dtype, int64_t value);  // "int64_t(3ll)"

// A function call: "f(x, y)".
std::string call(std::string_view function, const std::vector<std::string>& operands);

// The C++ expression of an op (ir/ops.def) applied to operands, which are vectors of the tile library or scalars:
// "tile::exp(x)", "x + y". Throws kUnsupportedOperator for an op whose text depends on types or attributes.
std::string applied(ir::Op op, const std::vector<std::string>& operands);

// The C++ expression of an op applied to masks of equal width: "x & y" for a product. An element of a mask counts as
// the number 0 or 1; sums are modulo 2. The condition of a select is a mask, too.
std::string applied_to_masks(ir::Op op, const std::vector<std::string>& masks);

}  // namespace heddle::codegen
