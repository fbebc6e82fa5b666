#pragma once

#include "driver/options/options.h"
#include "driver/plan/built_plan.h"

namespace heddle::driver {

// Groups the nodes of a graph as build_plan() does.
ir::Grouping group_nodes(const ir::Graph& graph, const Target& target, passes::FusionPolicy policy,
                         const passes::FusionRules& rules = {});

// The context for the passes that optimise a graph before it is planned with `settings`, which outlive the result.
passes::PassContext pass_context(const Settings& settings);

// Groups the nodes of an optimised graph, schedules each group, emits its kernels into context.kernels and places
// buffers. A group that cannot be compiled becomes a reference step.
BuiltPlan build_plan(const ir::Graph& graph, BuildContext& context);

// The same, but packed constants are left for BuiltPlan::makers to make. `loop_states` >= 0: the graph is the body of a
// loop with that many states.
BuiltPlan plan_without_constants(const ir::Graph& graph, BuildContext& context, int depth = 0,
                                 int64_t loop_states = -1);

}  // namespace heddle::driver
