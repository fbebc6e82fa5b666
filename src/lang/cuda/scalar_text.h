#pragma once

#include <string>
#include <vector>

#include "lang/ir/kernel.h"

// The C++ of single numbers: types, literals and the operations that are applied element by element.
namespace heddle::lang::cuda {

std::string element_type(Element element);  // "tile::half"
std::string scalar_type(const Type& type);  // "float", "tile::half*"
std::string literal(const Attribute& value, const Type& type);

// The value of an elementwise op of these numbers.
std::string expression(const Kernel& kernel, const Op& op, const std::vector<std::string>& operands);

}  // namespace heddle::lang::cuda
