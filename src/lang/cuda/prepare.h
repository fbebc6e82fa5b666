#pragma once

#include "lang/ir/kernel.h"

namespace heddle::lang::cuda {

// Duplicates index computations. If several dimensions use the same index (`x[:, None]` and `x[None, :]`), the kernel
// computes the index once per dimension: each dimension distributes the elements to threads differently, and computing
// an index again is cheaper than exchanging it between threads. Load masks that have other uses are duplicated, too.
void clone_indices(Kernel& kernel);

}  // namespace heddle::lang::cuda
