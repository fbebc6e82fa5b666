#pragma once

#include "lang/ir/kernel.h"

namespace heddle::lang {

// sums + dot(a, b, 0) becomes dot(a, b, sums), as most people write a loop of products. So the tensor cores add, and a
// product may run on into the next trip.
void fold_accumulation(Kernel& kernel);

}  // namespace heddle::lang
