#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Corrects a mean that is subtracted before squared deviations are summed: the mean of the deviations is added to it.
// The correction is computed in the same pass over the data as the sum of squares. Then equal values deviate from their
// mean by exactly zero, even if their sum or the quotient is not representable. Without the correction, a zero variance
// keeps the rounding error of the sum (one unit in the last place of the values), amplified by sqrt(1 / epsilon).
ir::Graph centre_means(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
