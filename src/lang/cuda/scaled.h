#pragma once

#include "lang/ir/kernel.h"

namespace heddle::lang::cuda {

// Replaces products of scaled operands by ordinary products of the values that the scaled operands represent. The new
// operands are bf16, which represents all such values exactly, or tf32 if an operand is f16.
void expand_scaled_products(Kernel& kernel);

}  // namespace heddle::lang::cuda
