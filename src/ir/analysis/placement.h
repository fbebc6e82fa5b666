#pragma once

#include <functional>
#include <string>

#include "ir/group.h"

namespace heddle::ir {

// Where the parts of concatenations in place (joins_in_place()) lie. A part may be such a concatenation itself; the
// host is the outermost one, which lies in no other.
Placements find_placements(const Graph& graph);

// Why the kernels of a group cannot read or store one of its values at a place in the memory of another; empty: they
// can.
using PlacementObstacle = std::function<std::string(const Graph&, const Group&, ValueId, const Placement&)>;

// Whether a group launches nothing: reshapes of one value, or a concatenation in place.
bool is_view(const Graph& graph, const Group& group);

}  // namespace heddle::ir
