#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heddle/dtype.h"
#include "ir/op.h"

// The C++ of types, numbers and elementwise ops, for kernels of models and of the tile language.
namespace heddle::codegen {

std::string_view storage_type(DType dtype);  // "tile::half"; bool: "uint8_t"

// A number of a type that kernels compute in: f32, f64, or an integer type, of which u64 is given by its bits.
std::string literal(DType dtype, double value);   // "0.5f"
std::string literal(DType dtype, int64_t value);  // "int64_t(3ll)"

// "f(x, y)"
std::string call(std::string_view function, const std::vector<std::string>& operands);

// The text of an op (ir/ops.def) with its operands, which are vectors of the tile library or scalars: "tile::exp(x)",
// "x + y". Throws kUnsupportedOperator for an op whose text depends on types or attributes.
std::string applied(ir::Op op, const std::vector<std::string>& operands);

// The same of masks of one width, which are numbers modulo 2: "x & y". The condition of a select is one, too.
std::string applied_to_masks(ir::Op op, const std::vector<std::string>& masks);

}  // namespace heddle::codegen
