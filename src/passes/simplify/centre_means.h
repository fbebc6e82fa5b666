#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Where squared differences from a mean are summed, the mean is corrected by the mean of those differences, which the
// same sweep over the data adds up: equal values then differ from their mean by exactly zero, although neither their
// sum nor its quotient need be representable. Without it the rounding of the sum, a unit in the last place of the
// values, meets a variance of zero and is amplified by the square root of 1 / epsilon.
ir::Graph centre_means(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
