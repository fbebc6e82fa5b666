#pragma once

#include <vector>

#include "ir/graph.h"

namespace heddle::ir {

// By value: whether elementwise steps lead from it to a step that turns an error of the last place into a large one: a
// rounding to integers or to a type of 8 bits, a remainder, a comparison. Such a step has to see what the operators
// before it give one by one, so kernels and passes may not save a rounding there. Values behind functions that no
// machine rounds correctly are left out: they have no one result to keep.
std::vector<bool> feed_decisions(const Graph& graph);

}  // namespace heddle::ir
