#pragma once

#include <map>

#include "schedule/region/exprs/kernel_exprs.h"

namespace heddle::schedule {

// Variables that an address divides by a factor of their extent, with the factor by which to split them.
std::map<VarId, int64_t> split_factors(const KernelExprs& exprs);

// True if every address, root and reduction walks over two neighbouring variables as over one, so that they can be
// merged into longer rows.
bool mergeable(const KernelExprs& exprs, VarId outer, VarId inner);
// The extents of a domain after merging such neighbours.
std::vector<int64_t> merged_extents(const KernelExprs& exprs, const IterationDomain& domain);

}  // namespace heddle::schedule
