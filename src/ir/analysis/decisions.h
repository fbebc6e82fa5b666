#pragma once

#include <vector>

#include "ir/graph.h"

namespace heddle::ir {

// By value: true if elementwise steps lead from it to a step that turns an error in the last place into a large one (a
// rounding to integers or to an 8-bit type, a remainder, a comparison). Such a step must see exactly the rounded
// results of the single operators, so kernels and passes may not skip a rounding before it. False for values that
// depend on functions without correct rounding, since they have no unique result to preserve.
std::vector<bool> feed_decisions(const Graph& graph);

}  // namespace heddle::ir
