#pragma once

#include <string>
#include <vector>

#include "lang/ir/kernel.h"

namespace heddle::lang::cpu {

// The C++ expression of an elementwise op. `operands` are the texts of its operands, which all have the same number of
// lanes. The expression works for scalars and for vectors.
std::string expression(const Kernel& kernel, const Op& op, const std::vector<std::string>& operands);

}  // namespace heddle::lang::cpu
