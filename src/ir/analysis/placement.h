#pragma once

#include <functional>
#include <string>

#include "ir/group.h"

namespace heddle::ir {

// Finds where the operands (parts) of in-place concatenations (joins_in_place()) are stored. A part may itself be such
// a concatenation. The host of a placement is the outermost concatenation, which is a part of no other concatenation.
Placements find_placements(const Graph& graph);

// Returns the reason why the kernels of a group cannot read or store one of its values inside the memory of another
// value; "" if they can.
using PlacementObstacle = std::function<std::string(const Graph&, const Group&, ValueId, const Placement&)>;

// True if a group launches no kernel: reshapes of one value, or an in-place concatenation.
bool is_view(const Graph& graph, const Group& group);

}  // namespace heddle::ir
