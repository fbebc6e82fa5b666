#pragma once

#include <string>
#include <vector>

#include "lang/ir/kernel.h"

// C++ text for scalars: types, literals and elementwise operations.
namespace heddle::lang::cuda {

std::string element_type(Element element);  // "tile::half"
std::string scalar_type(const Type& type);  // "float", "tile::half*"
std::string literal(const Attribute& value, const Type& type);

// The C++ expression that applies an elementwise op to these operands.
std::string expression(const Kernel& kernel, const Op& op, const std::vector<std::string>& operands);

}  // namespace heddle::lang::cuda
