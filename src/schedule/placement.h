#pragma once

#include <string>

#include "ir/group.h"
#include "target/target.h"

namespace heddle::schedule {

// The reason why the kernels of a group cannot read or store one of its values at `place`, inside the memory of another
// value, or would be slower if they did. Empty if there is none.
std::string placement_obstacle(const ir::Graph& graph, const ir::Group& group, ir::ValueId value,
                               const ir::Placement& place, const Target& target);

}  // namespace heddle::schedule
