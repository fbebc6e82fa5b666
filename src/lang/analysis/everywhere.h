#pragma once

#include <optional>
#include <vector>

#include "lang/analysis/indices.h"
#include "lang/ir/kernel.h"

namespace heddle::lang {

// Returns expressions that are all non-negative if and only if the mask is true for every element. Each expression is
// the margin of an index comparison at the element where the comparison is tightest. Returns nullopt if the mask
// contains anything other than index comparisons.
std::optional<std::vector<Polynomial>> true_everywhere(const Kernel& kernel, const IndexAnalysis& indices,
                                                       ValueId mask);

}  // namespace heddle::lang
