#pragma once

#include "lang/ir/kernel.h"

namespace heddle::lang {

// Rewrites sums + dot(a, b, 0), as most people write a loop of products, to dot(a, b, sums). The tensor cores then do
// the addition, and a product may still run in the next iteration.
void fold_accumulation(Kernel& kernel);

}  // namespace heddle::lang
