#pragma once

#include <map>

#include "schedule/region/exprs/kernel_exprs.h"

namespace heddle::schedule {

// Finds variables v for which an address contains the quotient v / f or the remainder v % f, where f divides the extent
// of v. Returns a map from each such variable to f, the factor by which to split it.
std::map<VarId, int64_t> split_factors(const KernelExprs& exprs);

// True if every address, root and reduction uses two neighbouring variables like a single variable, so that the
// variables can be merged into longer rows.
bool mergeable(const KernelExprs& exprs, VarId outer, VarId inner);
// Returns the extents of a domain after all mergeable neighbouring variables are merged, except the first `apart`.
std::vector<int64_t> merged_extents(const KernelExprs& exprs, const IterationDomain& domain, size_t apart = 0);

}  // namespace heddle::schedule
