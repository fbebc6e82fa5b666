#pragma once

#include <map>

#include "schedule/region/exprs/kernel_exprs.h"

namespace heddle::schedule {

// Variables that an address divides by a factor of their extent: the factor, by which each had better be split.
std::map<VarId, int64_t> split_factors(const KernelExprs& exprs);

// Whether every address, root and reduction walks over both of two neighbouring variables at once, so that they may be
// one, which makes rows long.
bool mergeable(const KernelExprs& exprs, VarId outer, VarId inner);
// The extents of a domain with such neighbours as one.
std::vector<int64_t> merged_extents(const KernelExprs& exprs, const IterationDomain& domain);

}  // namespace heddle::schedule
