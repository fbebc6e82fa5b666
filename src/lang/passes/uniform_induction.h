#pragma once

#include "lang/ir/kernel.h"

namespace heddle::lang {

// Rewrites a tile that a `for` loop carries and advances by a uniform amount (pointers += BLOCK_K). The tile becomes
// its initial value plus a scalar that the loop carries. The tile then needs no registers or memory across iterations,
// and the analysis of its addresses needs no induction.
void uniform_induction(Kernel& kernel);

}  // namespace heddle::lang
