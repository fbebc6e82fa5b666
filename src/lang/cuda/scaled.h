#pragma once

#include "lang/ir/kernel.h"

namespace heddle::lang::cuda {

// Replaces products of scaled operands by products of the values that these represent: in bf16, which holds all values
// exactly, or in tf32 if an operand is f16.
void expand_scaled_products(Kernel& kernel);

}  // namespace heddle::lang::cuda
