#pragma once

#include <vector>

#include "ir/graph.h"

namespace heddle::ir {

// True if a kernel can compute an element of the op's result as fast as it could load the element. This holds for
// elementwise ops that are not costly, and for divisions and remainders.
bool is_cheap(Op op);

// For each value, true if its elements depend only on their positions. Such a value is computed, by cheap ops and
// layout changes, from iotas and from constants whose elements are all equal. It needs no memory, whatever its size.
std::vector<bool> of_positions(const Graph& graph);

}  // namespace heddle::ir
