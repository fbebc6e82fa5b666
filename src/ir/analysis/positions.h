#pragma once

#include <vector>

#include "ir/graph.h"

namespace heddle::ir {

// True if kernels compute the op from positions as fast as they would load its result. This holds for elementwise ops
// that are not costly, and for divisions and remainders.
bool is_cheap(Op op);

// For each value, true if it depends only on positions. Cheap ops and layout changes compute it from iotas and from
// constants whose elements are all equal. Such a value needs no memory, whatever its size.
std::vector<bool> of_positions(const Graph& graph);

}  // namespace heddle::ir
