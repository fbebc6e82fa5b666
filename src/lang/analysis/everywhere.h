#pragma once

#include <optional>
#include <vector>

#include "lang/analysis/indices.h"
#include "lang/ir/kernel.h"

namespace heddle::lang {

// Numbers of which none may be negative, so that a mask is true everywhere: what its comparisons of indices need at the
// elements where they are closest. Nothing where the mask is made of other things.
std::optional<std::vector<Polynomial>> true_everywhere(const Kernel& kernel, const IndexAnalysis& indices,
                                                       ValueId mask);

}  // namespace heddle::lang
