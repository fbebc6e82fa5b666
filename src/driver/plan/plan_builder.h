#pragma once

#include "driver/options/options.h"
#include "driver/plan/built_plan.h"

namespace heddle::driver {

// Groups the nodes of a graph in the same way as build_plan().
ir::Grouping group_nodes(const ir::Graph& graph, const Target& target, passes::FusionPolicy policy,
                         const passes::FusionRules& rules = {});

// Returns the context for the passes that optimise a graph before it is planned with `settings`. The context refers to
// `settings`, which must outlive it.
passes::PassContext pass_context(const Settings& settings);

// Builds the plan of an optimised graph: groups the nodes, schedules each group, emits the kernels into context.kernels
// and assigns buffers to memory. A group that cannot be compiled becomes a reference step.
BuiltPlan build_plan(const ir::Graph& graph, BuildContext& context);

// Like build_plan(), but leaves the computation of packed constants to BuiltPlan::makers. `depth`: the nesting depth of
// loop and branch bodies. If `loop_states` >= 0, the graph is the body of a loop with that many states.
BuiltPlan plan_without_constants(const ir::Graph& graph, BuildContext& context, int depth = 0,
                                 int64_t loop_states = -1);

}  // namespace heddle::driver
