#pragma once

#include "lang/ir/kernel.h"

namespace heddle::lang {

// A tile that a `for` carries and moves by a uniform amount (pointers += BLOCK_K) becomes its first value plus a scalar
// that the loop carries. The tile then needs no registers or memory, and its addresses are known without induction.
void uniform_induction(Kernel& kernel);

}  // namespace heddle::lang
