#pragma once

#include "lang/ir/kernel.h"

namespace heddle::lang::cuda {

// Products of scaled operands become products of what their numbers stand for: of bf16, which holds all of them
// exactly, of tf32 where an operand is f16.
void expand_scaled_products(Kernel& kernel);

}  // namespace heddle::lang::cuda
