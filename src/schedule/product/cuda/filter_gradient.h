#pragma once

#include <string>

#include "ir/analysis/filter_gradient.h"
#include "schedule/product/contraction_builder.h"

namespace heddle::schedule {

// The reason why no GPU kernel reads both operands of a filter gradient where they are in memory; empty if one does.
std::string filter_gradient_obstacle(const ir::Graph& graph, const ir::Node& conv, const ir::FilterGradient& gradient,
                                     const GpuTarget& target);

// The reason why a kernel of a filter gradient cannot read its operand `value` at `place`; empty if it can, or if the
// group reads no such operand.
std::string filter_gradient_placement_obstacle(const ir::Graph& graph, const ir::Group& group, ir::ValueId value,
                                               const ir::Placement& place);

// The filter gradient that a group computes from operands where they are in memory; nullopt if it computes none.
std::optional<ir::FilterGradient> filter_gradient_of(const ContractionBuilder& builder);

// Schedules such a group as a product: rows are (tap, channel), columns are output channels, k is the pixels of all
// gradients. Depthwise gradients have the taps as rows and the channels as columns.
ScheduledGroup schedule_cuda_filter_gradient(ContractionBuilder& builder, const ir::FilterGradient& gradient);

}  // namespace heddle::schedule
