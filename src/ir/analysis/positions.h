#pragma once

#include <vector>

#include "ir/graph.h"

namespace heddle::ir {

// True if kernels compute the op from positions as fast as they would load its result: elementwise ops that are not
// costly, and divisions and remainders.
bool is_cheap(Op op);

// For every value, true if it depends only on positions: it is computed from iotas and constants of one repeated
// element by cheap ops and layout changes. Such a value needs no memory, whatever its size.
std::vector<bool> of_positions(const Graph& graph);

}  // namespace heddle::ir
