#pragma once

#include "lang/ir/kernel.h"

namespace heddle::lang::cuda {

// Indices that several dimensions are made of (`x[:, None]` and `x[None, :]` of one x) are computed once for each:
// threads hold other elements of them, and computing is cheaper than moving. So are masks of loads that others use, too.
void clone_indices(Kernel& kernel);

}  // namespace heddle::lang::cuda
