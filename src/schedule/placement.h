#pragma once

#include <string>

#include "ir/group.h"
#include "target/target.h"

namespace heddle::schedule {

// Why the kernels of a group cannot read or store one of its values at a place in the memory of another, or would be
// slower at it; empty: they can.
std::string placement_obstacle(const ir::Graph& graph, const ir::Group& group, ir::ValueId value,
                               const ir::Placement& place, const Target& target);

}  // namespace heddle::schedule
