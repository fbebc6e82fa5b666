#pragma once

#include <vector>

#include "ir/group.h"

namespace heddle::driver {

// Inlines elementwise nodes around calls of tile programs into those programs: nodes before a call are computed where
// its kernels load the operand, nodes after it where they store the result. Adds a decision for each node that was
// inlined or refused.
ir::Graph inline_neighbours(const ir::Graph& graph, std::vector<ir::Decision>& decisions);

}  // namespace heddle::driver
