#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Corrects a mean whose squared deviations are summed: adds the mean of the deviations, which the same sweep over the
// data computes. Equal values then deviate from their mean by exactly zero, although neither their sum nor the quotient
// need be representable. Without the correction, the rounding of the sum (one unit in the last place of the values)
// remains where the variance is zero, and is amplified by sqrt(1 / epsilon).
ir::Graph centre_means(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
