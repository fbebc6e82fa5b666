#pragma once

#include <string>

#include "ir/group.h"
#include "target/target.h"

namespace heddle::schedule {

// Returns a reason against reading or storing `value` at `place`, which is inside the memory of another value: the
// kernels of the group cannot do so, or they would become slower. Empty if there is no such reason.
std::string placement_obstacle(const ir::Graph& graph, const ir::Group& group, ir::ValueId value,
                               const ir::Placement& place, const Target& target);

}  // namespace heddle::schedule
