#pragma once

#include "driver/options/options.h"
#include "driver/plan/built_plan.h"

namespace heddle::driver {

// The groups of a graph as its plan has them.
ir::Grouping group_nodes(const ir::Graph& graph, const Target& target, passes::FusionPolicy policy,
                         const passes::FusionRules& rules = {});

// For the passes of a graph that is then planned with these settings, which outlive the result.
passes::PassContext pass_context(const Settings& settings);

// Groups the nodes of an optimised graph, schedules each group, emits its kernels into context.kernels and places
// buffers. A group that cannot be compiled becomes a reference step.
BuiltPlan build_plan(const ir::Graph& graph, BuildContext& context);

// The same with packed constants that are yet to be made (BuiltPlan::makers). `loop_states` >= 0: the graph is the body
// of a loop with that many states.
BuiltPlan plan_without_constants(const ir::Graph& graph, BuildContext& context, int depth = 0,
                                 int64_t loop_states = -1);

}  // namespace heddle::driver
