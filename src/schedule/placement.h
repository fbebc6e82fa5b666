#pragma once

#include <string>

#include "ir/group.h"
#include "target/target.h"

namespace heddle::schedule {

// Returns the reason why the kernels of a group cannot read or store `value` at `place`, which is inside the memory of
// another value, or why that would make them slower. Empty if there is no such reason.
std::string placement_obstacle(const ir::Graph& graph, const ir::Group& group, ir::ValueId value,
                               const ir::Placement& place, const Target& target);

}  // namespace heddle::schedule
