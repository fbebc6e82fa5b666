#pragma once

#include "lang/ir/kernel.h"

namespace heddle::lang {

// Rewrites sums + dot(a, b, 0), the usual way to write a loop of products, to dot(a, b, sums). The tensor cores then do
// the addition, and an asynchronous product may continue into the next iteration.
void fold_accumulation(Kernel& kernel);

}  // namespace heddle::lang
