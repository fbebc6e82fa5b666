#pragma once

#include "schedule/product/contraction_builder.h"

namespace heddle::schedule {

// Convolutions and pooling on a CPU.
ScheduledGroup schedule_conv(ContractionBuilder& builder);
ScheduledGroup schedule_window(ContractionBuilder& builder);
// The reason why a group would read or store a value more slowly inside the memory of another value; empty: it would
// not.
std::string cpu_placement_cost(const ir::Graph& graph, const ir::Group& group, ir::ValueId value,
                               const ir::Placement& place, const Target& target);

}  // namespace heddle::schedule
