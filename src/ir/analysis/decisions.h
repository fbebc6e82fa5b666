#pragma once

#include <vector>

#include "ir/graph.h"

namespace heddle::ir {

// Returns a flag for each value, indexed by value id. The flag is true if elementwise operations lead from the value to
// an operation that turns an error in the last place into a large error: a rounding to integers or to an 8-bit type, a
// remainder or a comparison. Such an operation must see exactly the rounded results of the separate operators, so
// kernels and passes must not skip a rounding before it. The flag is false for values that depend on functions without
// correct rounding, since such values have no unique result to preserve.
std::vector<bool> feed_decisions(const Graph& graph);

}  // namespace heddle::ir
