#pragma once

#include <vector>

#include "ir/group.h"

namespace heddle::driver {

// Inlines elementwise nodes into the tile programs that the graph calls next to them. The kernels of a program compute
// nodes before the call when they load the operand, and nodes after the call when they store the result. Appends to
// `decisions` a decision for each node that was inlined or refused.
ir::Graph inline_neighbours(const ir::Graph& graph, std::vector<ir::Decision>& decisions);

}  // namespace heddle::driver
