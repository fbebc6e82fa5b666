#include "driver/plan/plan_builder.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <unordered_map>

#include "base/check.h"
#include "base/thread/cancel.h"
#include "base/thread/thread_pool.h"
#include "driver/model/kernel_report.h"
#include "driver/plan/alias.h"
#include "driver/plan/group_facts.h"
#include "driver/plan/group_kernels.h"
#include "driver/plan/joined_groups.h"
#include "driver/plan/plan_buffers.h"
#include "driver/plan/reference.h"
#include "driver/plan/sequences.h"
#include "driver/target/backend.h"
#include "ir/analysis/placement.h"
#include "passes/simplify/update_in_place.h"
#include "schedule/attention/attention.h"
#include "schedule/attention/form.h"
#include "schedule/back_to_back/back_to_back.h"
#include "schedule/backend.h"
#include "schedule/floor.h"
#include "schedule/placement.h"
#include "schedule/recurrence/recurrent.h"
#include "schedule/region/standalone.h"

namespace heddle::driver {
namespace {

using ir::ValueId;
using runtime::Buffer;
using runtime::Place;

// Builds the plan of one graph, front to back.
class PlanBuilder {
 public:
  PlanBuilder(const ir::Graph& graph, BuildContext& context, int depth, int64_t loop_states)
      : graph_(graph),
        context_(context),
        depth_(depth),
        loop_states_(loop_states),
        plan_(*result_.plan),
        buffers_(graph, context, result_),
        kernels_of_(graph, context) {}

  BuiltPlan run() {
    result_.grouping = group_nodes(graph_, context_.target, context_.fusion, context_.rules);
    std::vector<ir::Decision>& decisions = context_.report.decisions;
    decisions.insert(decisions.end(), result_.grouping.decisions.begin(), result_.grouping.decisions.end());
    add_inputs();
    choose_ports();
    joined_ = join_groups(graph_, result_.grouping, kernels_of_, context_);
    for (group_ = 0; group_ < result_.grouping.groups.size(); ++group_) {
      check_cancelled();
      add_group(result_.grouping.groups[group_]);
    }
    add_memory_to_floors();
    add_outputs();
    keep_old_values(result_, buffers_, context_.report);
    finish_kernels(graph_, std::move(pending_), depth_, context_, buffers_, result_);
    buffers_.place();
    if (depth_ == 0) context_.report.arena_bytes = plan_.arena_bytes;
    return std::move(result_);
  }

 private:
  // --- ports -----------------------------------------------------------------------------------------------------

  void add_inputs() {
    for (const ir::Graph::Port& input : graph_.inputs()) {
      const ir::TensorType& type = graph_.type(input.value);
      const uint32_t index = buffers_.add_input(input);
      plan_.inputs.push_back({input.name, type.dtype, type.shape, index});
    }
  }

  // Which values are made directly in an output. Later ports win: a loop's stacked slices, which come last, then also
  // serve as states, without a copy. Through a view the value under it is made there.
  void choose_ports() {
    // What is written in place has to be; what is copied to the memory of an input is not made there.
    for (const bool in_place : {false, true}) {
      for (uint32_t i = 0; i < graph_.outputs().size(); ++i) {
        const ir::Graph::Port& output = graph_.outputs()[i];
        const bool takes = in_place ? is_in_place(output) : output.alias == ir::Graph::kNoAlias;
        if (takes) buffers_.make_in_port(output.value, i);
      }
    }
    const auto& groups = result_.grouping.groups;
    for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
      if (!ir::is_view(graph_, *group)) continue;
      for (auto id = group->nodes.rbegin(); id != group->nodes.rend(); ++id) {
        const ir::Node& node = graph_.node(*id);
        if (node.op == ir::Op::kReshape) buffers_.make_in_port_of(node.inputs[0], node.outputs[0]);
      }
    }
  }

  bool is_in_place(const ir::Graph::Port& output) const { return passes::is_updated_in_place(graph_, output); }

  // Where the value of a port comes from through views; a parameter's position, else -1.
  int64_t parameter_behind(ValueId value) const {
    while (graph_.producer(value).op == ir::Op::kReshape) value = graph_.producer(value).inputs[0];
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      if (graph_.inputs()[i].value == value) return static_cast<int64_t>(i);
    }
    return -1;
  }

  // The rules of plan.h for the body of a loop: a state that is another state, or a counter, must be copied.
  bool needs_copy(size_t port, ValueId value) const {
    if (loop_states_ < 0 || port < 1 || port > static_cast<size_t>(loop_states_)) return false;
    const int64_t parameter = parameter_behind(value);
    return parameter >= 0 && parameter < 2 + loop_states_ && parameter != static_cast<int64_t>(port) + 1;
  }

  void add_outputs() {
    std::vector<runtime::CopyStep> late;
    for (uint32_t i = 0; i < graph_.outputs().size(); ++i) {
      const ir::Graph::Port& output = graph_.outputs()[i];
      const ir::TensorType& type = graph_.type(output.value);
      uint32_t buffer = buffers_.read(output.value);
      if (needs_copy(i, output.value)) {
        const uint32_t own = buffers_.add_output(i);
        add_step(runtime::CopyStep{buffer, own}, "copy " + output.name, "");
        buffer = own;
      }
      if (output.alias != ir::Graph::kNoAlias) buffer = add_alias(i, buffer, late);
      plan_.outputs.push_back({output.name, type.dtype, type.shape, buffer});
    }
    for (const runtime::CopyStep& copy : late) {
      buffers_.touch(copy.from);
      add_step(copy, "copy " + plan_.buffers[copy.to].name, "");
    }
  }

  // The buffer of an output in the memory of an input. What no step writes there is copied when nothing reads inputs
  // any more (`late`); another input first to where no such copy writes.
  uint32_t add_alias(uint32_t port, uint32_t buffer, std::vector<runtime::CopyStep>& late) {
    const ir::Graph::Port& output = graph_.outputs()[port];
    const ir::TensorType& type = graph_.type(output.value);
    runtime::Alias alias{port, static_cast<uint32_t>(output.alias), true};
    const Buffer from = plan_.buffers[buffer];
    const bool is_made = from.place == Place::kOutput && from.index == port;
    if (!is_made) {
      const bool is_itself = from.place == Place::kInput && from.index == alias.input;
      if (from.place == Place::kInput && !is_itself) {
        const uint32_t copy = buffers_.add_arena(type, from.name);
        add_step(runtime::CopyStep{buffer, copy}, "copy " + from.name, "");
        buffer = copy;
      }
      const uint32_t own = buffers_.add_output(port);
      alias.partial = is_itself;
      if (!is_itself) late.push_back({buffer, own});
      buffer = own;
    }
    plan_.aliases.push_back(alias);
    return buffer;
  }

  // --- steps -----------------------------------------------------------------------------------------------------

  template <typename Action>
  void add_step(Action action, std::string label, std::string origin, double floor_seconds = 0, int64_t kernel = -1) {
    plan_.steps.push_back({std::move(action), std::move(label), std::move(origin), floor_seconds});
    result_.step_group.push_back(static_cast<int64_t>(group_));
    result_.step_report.emplace_back(position_, kernel);
  }

  void add_group(const ir::Group& group) {
    GroupReport report;
    report.kind = group.kind;
    report.depth = depth_;
    report.nodes = group.nodes.size();
    report.ops = summarise_ops(graph_, group);
    report.origins = summarise_origins(graph_, group);
    report.notes = group.notes;
    const size_t position = context_.report.groups.size();
    context_.report.groups.emplace_back();  // before those of its bodies
    position_ = position;
    if (ir::is_view(graph_, group)) {
      report.view = true;
      for (const ir::NodeId id : group.nodes) {
        const ir::Node& node = graph_.node(id);
        if (node.op == ir::Op::kReshape) buffers_.add_view(node.outputs[0], node.inputs[0]);
      }
    } else if (group.kind == ir::GroupKind::kControl) {
      add_control(graph_.node(group.anchor), report);
    } else if (group.kind == ir::GroupKind::kReference) {
      add_reference(group, report);
    } else {
      add_compiled(group, report);
    }
    context_.report.groups[position] = std::move(report);
  }

  void add_reference(const ir::Group& group, const GroupReport& report) {
    HEDDLE_CHECK(group.placed.empty(),
                 "{} has a part of a concatenation, and the reference evaluator takes dense values", report.ops);
    runtime::ReferenceStep action{reference_text(graph_, group), {}, {}};
    for (const ValueId value : group.inputs) action.parameters.push_back(buffers_.read(value));
    for (const ValueId value : group.outputs) action.results.push_back(buffers_.write(value));
    add_step(std::move(action), "reference: " + report.ops, report.origins);
  }

  void add_compiled(const ir::Group& group, GroupReport& report) {
    if (add_joined(report)) return;
    try {
      auto [scheduled, sources] = kernels_of_.make(group);
      report.notes.insert(report.notes.end(), scheduled.notes.begin(), scheduled.notes.end());
      report.boundaries = scheduled.boundaries;
      report.bytes_inside = bytes_inside(graph_, group);
      if (group.kind == ir::GroupKind::kStitch) report.compulsory_bytes = compulsory_bytes(graph_, group);
      add_kernels(scheduled, std::move(sources), report);
      // No kernel writes an empty value, but whoever reads it needs a buffer.
      for (const ValueId value : group.outputs) {
        if (element_count(graph_.shape(value)) == 0) buffers_.write(value);
      }
    } catch (const Error& error) {
      const bool is_given = group.kind == ir::GroupKind::kTile;  // whoever wrote the kernels wants them to run
      const bool is_unsupported =
          error.code() == ErrorCode::kUnsupportedOperator || error.code() == ErrorCode::kUnsupportedType;
      if (is_given || !is_unsupported) throw;
      report.fallback = error.why();
      add_reference(group, report);
    }
  }

  void add_kernels(const schedule::ScheduledGroup& scheduled, std::vector<codegen::KernelSource> sources,
                   GroupReport& report) {
    std::vector<uint32_t> workspaces;
    for (const schedule::Workspace& workspace : scheduled.workspaces)
      workspaces.push_back(buffers_.add_later_workspace(workspace.bytes));
    for (size_t k = 0; k < sources.size(); ++k) {
      const schedule::ScheduledKernel& kernel = scheduled.kernels[k];
      codegen::KernelSource& source = sources[k];
      HEDDLE_CHECK(kernel.bindings.size() == kernel.desc.operands.size(), "{}: operands without binding", kernel.label);
      std::vector<uint32_t> operands;
      for (size_t i = 0; i < kernel.bindings.size(); ++i) operands.push_back(operand(kernel, i, workspaces));
      check_in_place(kernel, operands);
      report.kernels.push_back(report_of(graph_, kernel, source));
      const auto index = static_cast<int64_t>(report.kernels.size()) - 1;
      if (!source.arguments.empty()) operands.push_back(buffers_.add_numbers(source.arguments));
      if (source.workspace_bytes > 0 || source.counter_bytes > 0) {
        operands.push_back(buffers_.add_workspace(source.workspace_bytes));
      }
      auto action = backend_of(context_.target).step(source, std::move(operands));
      add_step(std::move(action), kernel.label, report.origins, kernel.floor_seconds, index);
      pending_.push_back({kernel, std::move(source)});
      note_constants(kernel, report.kernels.size() - 1);
    }
  }

  // --- floors ----------------------------------------------------------------------------------------------------

  struct ConstantReads {
    size_t step, group, kernel;  // in the plan; in the report
    double bytes;
  };

  void note_constants(const schedule::ScheduledKernel& kernel, size_t index) {
    const ir::Group& group = result_.grouping.groups[group_];
    if (group.kind == ir::GroupKind::kTile) return;  // which elements it reads is unknown
    const auto is_constant = [this](const schedule::Binding& binding) {
      return binding.kind == schedule::Binding::Kind::kTensor ||
             (binding.kind == schedule::Binding::Kind::kValue && graph_.constant_of(binding.value) != nullptr);
    };
    // The traffic of each kernel is found by a walk over the whole group.
    if (std::none_of(kernel.bindings.begin(), kernel.bindings.end(), is_constant)) return;
    const std::vector<double> traffic = schedule::operand_traffic(graph_, group, kernel);
    ConstantReads reads{plan_.steps.size() - 1, position_, index, 0};
    for (size_t i = 0; i < traffic.size(); ++i) {
      const schedule::Binding& binding = kernel.bindings[i];
      if (!is_constant(binding)) continue;
      const bool is_value = binding.kind == schedule::Binding::Kind::kValue;
      reads.bytes += traffic[i];
      const void* data = is_value ? graph_.constant_of(binding.value)->data() : binding.tensor.data();
      double& once = distinct_constants_[data];
      once = std::max(once, traffic[i]);
    }
    if (reads.bytes > 0) constant_reads_.push_back(reads);
  }

  // Constants beyond what the caches keep between runs come from memory in every run; each constant contributes the
  // same share. Loop bodies reread theirs at once.
  void add_memory_to_floors() {
    double all = 0;
    for (const auto& [data, bytes] : distinct_constants_) all += bytes;
    if (depth_ > 0 || all <= 0) return;
    const double share = std::max(0.0, 1 - schedule::cached_bytes(context_.target) / all);
    for (const ConstantReads& reads : constant_reads_) {
      const double seconds = schedule::memory_seconds(share * reads.bytes, context_.target);
      double& floor = plan_.steps[reads.step].floor_seconds;
      floor = std::max(floor, seconds);
      context_.report.groups[reads.group].kernels[reads.kernel].floor_seconds = floor;
    }
  }

  // A kernel that writes a part of its result needs the rest to be there.
  void check_in_place(const schedule::ScheduledKernel& kernel, const std::vector<uint32_t>& operands) const {
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!kernel.desc.operands[i].in_place) continue;
      const Buffer& result = plan_.buffers[operands[i]];
      HEDDLE_CHECK(result.place == Place::kOutput && is_in_place(graph_.outputs()[result.index]),
                   "{} writes in place to memory of its own", kernel.label);
    }
  }

  // Whether the i-th operand is what the kernel itself writes a part of.
  static bool reads_own_result(const schedule::ScheduledKernel& kernel, size_t i) {
    const schedule::Binding& binding = kernel.bindings[i];
    for (size_t k = 0; k < kernel.bindings.size(); ++k) {
      const schedule::Binding& result = kernel.bindings[k];
      if (kernel.desc.operands[k].in_place && result.kind == binding.kind && result.value == binding.value) return true;
    }
    return false;
  }

  uint32_t operand(const schedule::ScheduledKernel& kernel, size_t i, const std::vector<uint32_t>& workspaces) {
    const schedule::Operand& operand = kernel.desc.operands[i];
    const schedule::Binding& binding = kernel.bindings[i];
    if (binding.kind == schedule::Binding::Kind::kWorkspace) return buffers_.touch(workspaces.at(binding.workspace));
    if (binding.kind == schedule::Binding::Kind::kTensor) {
      return buffers_.add_constant(binding.tensor, {operand.dtype, operand.shape});
    }
    const bool writes = operand.role == schedule::Operand::Role::kOutput;
    if (writes || reads_own_result(kernel, i)) return buffers_.write(binding.value);
    if (!operand.packing.kind.empty()) return buffers_.packed_constant(binding.value, operand.packing);
    return buffers_.read(binding.value);
  }

  // --- control ---------------------------------------------------------------------------------------------------

  // The group as part of a kernel that runs several groups, or all steps of a loop.
  bool add_joined(GroupReport& report) {
    const auto found = joined_.find(group_);
    if (found == joined_.end()) return false;
    const JoinedGroups& joined = found->second;
    if (joined.runs_at != group_) {
      const ir::Group& other = result_.grouping.groups[joined.runs_at];
      report.notes.push_back(fmt::format("runs side by side with {}, in its kernel", summarise_origins(graph_, other)));
      return true;
    }
    if (!joined.kernel) {
      report.notes.push_back("launches in every step: " + joined.why);
      return false;
    }
    std::vector<codegen::KernelSource> sources;
    for (const schedule::ScheduledKernel& kernel : joined.kernel->kernels) {
      sources.push_back(codegen::emit(schedule::plan_kernel(kernel, context_.target), context_.target));
    }
    report.notes.insert(report.notes.end(), joined.kernel->notes.begin(), joined.kernel->notes.end());
    add_kernels(*joined.kernel, std::move(sources), report);
    return true;
  }

  std::shared_ptr<const runtime::Plan> body_plan(const ir::Graph& body, int64_t loop_states) {
    BuiltPlan built = plan_without_constants(body, context_, depth_ + 1, loop_states);
    runtime::make_constants(*built.plan, built.makers);
    return built.plan;
  }

  void add_control(const ir::Node& node, GroupReport& report) {
    if (node.op == ir::Op::kLoop) {
      add_loop(node, report);
    } else {
      HEDDLE_CHECK(node.op == ir::Op::kIf);
      add_branch(node, report);
    }
  }

  void add_loop(const ir::Node& node, GroupReport& report) {
    if (add_joined(report)) return;
    runtime::LoopStep action;
    const auto states = static_cast<size_t>(node.attrs.integer("states"));
    action.body = body_plan(node.attrs.graph("body"), static_cast<int64_t>(states));
    action.trip = buffers_.read(node.inputs[0]);
    action.condition = buffers_.read(node.inputs[1]);
    for (size_t i = 2; i < node.inputs.size(); ++i) {
      (i < 2 + states ? action.states : action.invariants).push_back(buffers_.read(node.inputs[i]));
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      (i < states ? action.final_states : action.stacked).push_back(buffers_.write(node.outputs[i]));
    }
    if (const ir::Attr* trip = node.attrs.find("trip")) {
      action.trip_bound = std::get<int64_t>(*trip);
      report.trips = action.trip_bound;
    }
    action.workspace = buffers_.add_workspace(runtime::workspace_bytes(action));
    add_step(std::move(action), fmt::format("loop of {} steps", action.body->steps.size()), report.origins);
  }

  void add_branch(const ir::Node& node, const GroupReport& report) {
    runtime::BranchStep action;
    action.then_body = body_plan(node.attrs.graph("then"), -1);
    action.else_body = body_plan(node.attrs.graph("else"), -1);
    action.condition = buffers_.read(node.inputs[0]);
    for (size_t i = 1; i < node.inputs.size(); ++i) action.captured.push_back(buffers_.read(node.inputs[i]));
    for (const ValueId value : node.outputs) action.results.push_back(buffers_.write(value));
    action.workspace = buffers_.add_workspace(runtime::workspace_bytes(action));
    add_step(std::move(action), "branch", report.origins);
  }

  const ir::Graph& graph_;
  BuildContext& context_;
  int depth_;
  int64_t loop_states_;
  BuiltPlan result_{std::make_shared<runtime::Plan>(), {}, {}, {}, {}, {}};
  runtime::Plan& plan_;
  size_t group_ = 0, position_ = 0;
  PlanBuffers buffers_;
  GroupKernels kernels_of_;
  std::map<size_t, JoinedGroups> joined_;  // by group
  std::vector<PendingKernel> pending_;     // of the steps so far
  std::vector<ConstantReads> constant_reads_;
  std::map<const void*, double> distinct_constants_;  // bytes read, by address of the constant
};

}  // namespace

namespace {

ir::PlacementObstacle placement_obstacle(const Target& target) {
  return [&target](const ir::Graph& graph, const ir::Group& group, ValueId value, const ir::Placement& place) {
    return schedule::placement_obstacle(graph, group, value, place, target);
  };
}

}  // namespace

ir::Grouping group_nodes(const ir::Graph& graph, const Target& target, passes::FusionPolicy policy,
                         const passes::FusionRules& rules) {
  const schedule::AttentionFinder attentions(graph);
  const passes::FusionOptions options = {
      .policy = policy,
      .rules = rules,
      .can_compile = [&](const ir::Node& node,
                         std::string* reason) { return schedule::can_compile(graph, node, target, reason); },
      .find_attention = [&](ir::NodeId product, const passes::FusionOptions::MayView& may_view,
                            std::string* reason) { return attentions.find(product, may_view, reason); },
      .find_filter_gradient =
          [&](ir::NodeId conv, const passes::FusionOptions::MayView& may_view) {
            auto found = ir::filter_gradient(graph, conv, may_view);
            const auto& backend = schedule::backend_of(target);
            if (found && !backend.reads_filter_gradient(graph, graph.node(conv), *found, target)) found.reset();
            return found;
          },
      .can_attend = [&](const ir::Group& group,
                        std::string* reason) { return schedule::can_attend(graph, group, target, reason); },
      .can_run_back_to_back =
          [&](const ir::Group& group, std::string* reason) {
            return schedule::can_run_back_to_back(graph, group, target, reason);
          },
      .pays_to_read_packed =
          [&](const ir::Group& packed, const ir::Group& widened, std::string* reason) {
            return schedule::backend_of(target).pays_to_read_packed(graph, packed, widened, target, reason);
          },
      .placement_obstacle = placement_obstacle(target),
  };
  return passes::fuse(graph, target, options);
}

passes::PassContext pass_context(const Settings& settings) {
  passes::PassContext context{settings.target, settings.precision};
  context.group = [&settings](const ir::Graph& graph) {
    return group_nodes(graph, settings.target, settings.fusion, settings.rules);
  };
  if (settings.fusion == passes::FusionPolicy::kStitch)
    context.placement_obstacle = placement_obstacle(settings.target);
  return context;
}

BuiltPlan plan_without_constants(const ir::Graph& graph, BuildContext& context, int depth, int64_t loop_states) {
  return PlanBuilder(graph, context, depth, loop_states).run();
}

BuiltPlan build_plan(const ir::Graph& graph, BuildContext& context) {
  BuiltPlan built = plan_without_constants(graph, context);
  runtime::make_constants(*built.plan, built.makers);
  built.makers.clear();
  return built;
}

}  // namespace heddle::driver
