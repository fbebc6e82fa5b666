#pragma once

#include "lang/ir/kernel.h"

namespace heddle::lang {

// Tiles that a `for` carries and moves by an amount that is the same for all elements (pointers += BLOCK_K) become
// their first value plus a scalar that the loop carries instead. So no registers or memory hold them, and where they
// point is seen without induction.
void uniform_induction(Kernel& kernel);

}  // namespace heddle::lang
