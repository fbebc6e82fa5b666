#pragma once

#include "schedule/product/contraction_builder.h"

namespace heddle::schedule {

// Schedule convolutions and pooling on a CPU.
ScheduledGroup schedule_conv(ContractionBuilder& builder);
ScheduledGroup schedule_window(ContractionBuilder& builder);
// Returns the reason why a group would be slower if it read or stored a value inside the memory of another value; "" if
// it would not be slower.
std::string cpu_placement_cost(const ir::Graph& graph, const ir::Group& group, ir::ValueId value,
                               const ir::Placement& place, const Target& target);

}  // namespace heddle::schedule
