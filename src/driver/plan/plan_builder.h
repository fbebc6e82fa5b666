#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "driver/compile/kernel_set.h"
#include "driver/compile/options.h"
#include "driver/compile/report.h"
#include "driver/plan/constant_pool.h"
#include "passes/fusion/fusion.h"
#include "runtime/plan.h"
#include "runtime/plan_io.h"

namespace heddle::driver {

// The groups of a graph as its plan has them.
ir::Grouping group_nodes(const ir::Graph& graph, const Target& target, passes::FusionPolicy policy,
                         const passes::FusionRules& rules = {});

// For the passes of a graph that is then planned with these settings, which outlive the result.
passes::PassContext pass_context(const Settings& settings);

class GroupMemo;

struct BuildContext {
  const Target& target;
  passes::FusionPolicy fusion = passes::FusionPolicy::kStitch;
  KernelSet& kernels;
  CompileReport& report;
  schedule::ConfigSource* configs = nullptr;  // what a tuner found
  schedule::StitchOptions stitch = {};
  passes::FusionRules rules = {};
  // Of the plans of one model for several sets of shapes: what they share. CPU only.
  codegen::NumberChoice* numbers = nullptr;
  ConstantPool* constants = nullptr;
  GroupMemo* groups = nullptr;
};

// A plan without its library, with the buffers of the graph's values for `verify`.
struct BuiltPlan {
  std::shared_ptr<runtime::Plan> plan;
  ir::Grouping grouping;
  std::vector<int64_t> step_group;            // by step: index into grouping.groups
  std::map<ir::ValueId, uint32_t> buffer_of;  // values that have a buffer
  // By step: its group in CompileReport::groups, and its kernel there (-1: none).
  std::vector<std::pair<size_t, int64_t>> step_report;
  runtime::ConstantMakers makers;  // of plan_without_constants(); the constants of bodies are made
};

// Groups the nodes of an optimised graph, schedules each group, emits its kernels into context.kernels and places
// buffers. A group that cannot be compiled becomes a reference step.
BuiltPlan build_plan(const ir::Graph& graph, BuildContext& context);

// The same with packed constants that are yet to be made (BuiltPlan::makers). `loop_states` >= 0: the graph is the body
// of a loop with that many states.
BuiltPlan plan_without_constants(const ir::Graph& graph, BuildContext& context, int depth = 0,
                                 int64_t loop_states = -1);

}  // namespace heddle::driver
