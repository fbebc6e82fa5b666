#pragma once

#include "lang/ir/kernel.h"

namespace heddle::lang::cuda {

// Computes an index that several dimensions use (`x[:, None]` and `x[None, :]` of one x) once per dimension. Threads
// hold other elements of it for each, and computing is cheaper than moving. The same for load masks that have other
// uses.
void clone_indices(Kernel& kernel);

}  // namespace heddle::lang::cuda
