#pragma once

#include <string>
#include <vector>

#include "lang/ir/kernel.h"

namespace heddle::lang::cpu {

// An elementwise op as an expression of its operands, which all have the same number of lanes. The same text works for
// scalars and vectors.
std::string expression(const Kernel& kernel, const Op& op, const std::vector<std::string>& operands);

}  // namespace heddle::lang::cpu
