#pragma once

#include <vector>

#include "ir/group.h"

namespace heddle::driver {

// Inlines elementwise nodes into the tile programs that the graph calls next to them. A node whose result the call
// reads is then computed when the program's kernels load the operand. A node that reads the call's result is computed
// when they store the result. Appends to `decisions` a decision for each node that was inlined or refused.
ir::Graph inline_neighbours(const ir::Graph& graph, std::vector<ir::Decision>& decisions);

}  // namespace heddle::driver
