#pragma once

#include <optional>
#include <vector>

#include "lang/analysis/indices.h"
#include "lang/ir/kernel.h"

namespace heddle::lang {

// Expressions that must all be non-negative for a mask to be true everywhere. Each is the margin of a comparison of
// indices at the element where it is tightest. nullopt if the mask has parts that are not such comparisons.
std::optional<std::vector<Polynomial>> true_everywhere(const Kernel& kernel, const IndexAnalysis& indices,
                                                       ValueId mask);

}  // namespace heddle::lang
