#include "driver/plan/alias.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/check.h"
#include "base/near_miss.h"
#include "driver/shapes/pattern.h"
#include "passes/simplify/update_in_place.h"

namespace heddle::driver {
namespace {

using ir::Graph;
using runtime::Plan;
using runtime::Step;

[[noreturn]] void refuse(const std::string& why, const std::string& remedy) {
  fail(ErrorCode::kInvalidArgument, "alias", why, remedy);
}

std::vector<std::string_view> names_of(const std::vector<Graph::Port>& ports) {
  std::vector<std::string_view> names;
  for (const Graph::Port& port : ports) names.push_back(port.name);
  return names;
}

size_t find_port(const std::vector<Graph::Port>& ports, const std::string& name, const char* kind) {
  const auto found =
      std::find_if(ports.begin(), ports.end(), [&](const Graph::Port& port) { return port.name == name; });
  if (found != ports.end()) return static_cast<size_t>(found - ports.begin());
  refuse(fmt::format("the model has no {} \"{}\"", kind, name),
         did_you_mean(name, names_of(ports)) + fmt::format("The {}s are {}", kind, fmt::join(names_of(ports), ", ")));
}

void set_alias(Graph& graph, size_t output, size_t input) {
  const Graph::Port &to = graph.outputs()[output], &from = graph.inputs()[input];
  if (to.alias == static_cast<int32_t>(input)) return;
  if (to.alias != Graph::kNoAlias) {
    refuse(fmt::format("output {} is to lie in two inputs, {} and {}", to.name,
                       graph.inputs()[static_cast<size_t>(to.alias)].name, from.name),
           "Name one input for each output");
  }
  for (const Graph::Port& other : graph.outputs()) {
    if (other.alias != static_cast<int32_t>(input)) continue;
    refuse(fmt::format("input {} is to hold two outputs, {} and {}", from.name, other.name, to.name),
           "Name each input once");
  }
  const ir::TensorType &has = graph.type(from.value), &wants = graph.type(to.value);
  if (has != wants) {
    refuse(fmt::format("output {} is {} and does not fit into input {}, which is {}", to.name, to_string(wants),
                       from.name, to_string(has)),
           "An output shares the memory of an input of its type and shape");
  }
  graph.set_alias(output, static_cast<int32_t>(input));
}

void set_pattern(Graph& graph, const std::string& to, const std::string& from) {
  if (!have_one_star_each(to, from)) {
    refuse(fmt::format("\"{}\" and \"{}\" do not have one * each", to, from),
           "Write for example present.*=past.*, where the stars stand for the same text");
  }
  if (to.find('*') == std::string::npos)
    return set_alias(graph, find_port(graph.outputs(), to, "output"), find_port(graph.inputs(), from, "input"));
  bool any = false;
  for (size_t output = 0; output < graph.outputs().size(); ++output) {
    const std::optional<std::string> text = star_of(to, graph.outputs()[output].name);
    if (!text) continue;
    any = true;
    set_alias(graph, output, find_port(graph.inputs(), with_star(from, *text), "input"));
  }
  if (any) return;
  refuse(fmt::format("no output matches \"{}\"", to),
         fmt::format("The outputs are {}", fmt::join(names_of(graph.outputs()), ", ")));
}

// Calls `use` with each buffer that a step reads, and for kernels with those that it writes.
template <typename Use>
void for_each_operand(Step& step, const Use& use) {
  const auto all = [&](std::vector<uint32_t>& buffers) { std::for_each(buffers.begin(), buffers.end(), use); };
  if (auto* kernel = std::get_if<runtime::KernelStep>(&step.action)) {
    all(kernel->operands);
  } else if (auto* on_gpu = std::get_if<runtime::CudaStep>(&step.action)) {
    all(on_gpu->operands);
  } else if (auto* reference = std::get_if<runtime::ReferenceStep>(&step.action)) {
    all(reference->parameters);
  } else if (auto* copy = std::get_if<runtime::CopyStep>(&step.action)) {
    use(copy->from);
  } else if (auto* loop = std::get_if<runtime::LoopStep>(&step.action)) {
    use(loop->trip);
    use(loop->condition);
    all(loop->states);
    all(loop->invariants);
  } else {
    auto& branch = std::get<runtime::BranchStep>(step.action);
    use(branch.condition);
    all(branch.captured);
  }
}

// Copies of the old value of one input for those who read it late.
class OldValue {
 public:
  OldValue(BuiltPlan& built, PlanBuffers& buffers, const runtime::Alias& alias)
      : built_(built), plan_(*built.plan), buffers_(buffers), alias_(alias) {}

  // Returns who made it necessary; "" where nobody did.
  std::string keep() {
    const std::optional<size_t> update = find_update();
    if (!update) return "";
    // The update counts: what it has written it must not read as new elements or as indices.
    std::string reader;
    for (size_t s = *update; s < plan_.steps.size(); ++s) {
      for_each_operand(plan_.steps[s], [&](uint32_t buffer) {
        if (is_input(buffer) && reader.empty()) reader = plan_.steps[s].label;
      });
    }
    for (const runtime::Port& port : plan_.outputs) {
      if (is_input(port.buffer) && reader.empty()) reader = "output " + port.name;
    }
    if (!reader.empty()) copy_before(*update);
    return reader;
  }

 private:
  bool is_input(uint32_t buffer) const {
    const runtime::Buffer& b = plan_.buffers[buffer];
    return b.place == runtime::Place::kInput && b.index == alias_.input;
  }
  bool is_output(uint32_t buffer) const {
    const runtime::Buffer& b = plan_.buffers[buffer];
    return b.place == runtime::Place::kOutput && b.index == alias_.output;
  }

  // The step that writes the output: no other one has it before.
  std::optional<size_t> find_update() {
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      bool writes = false;
      for_each_operand(plan_.steps[s], [&](uint32_t buffer) { writes = writes || is_output(buffer); });
      if (const auto* reference = std::get_if<runtime::ReferenceStep>(&plan_.steps[s].action)) {
        writes = writes || std::any_of(reference->results.begin(), reference->results.end(),
                                       [&](uint32_t buffer) { return is_output(buffer); });
      } else if (const auto* copy = std::get_if<runtime::CopyStep>(&plan_.steps[s].action)) {
        writes = writes || is_output(copy->to);
      }
      if (writes) return s;
    }
    return std::nullopt;
  }

  void copy_before(size_t update) {
    const auto at = static_cast<int64_t>(update);
    buffers_.make_room_at(at);
    const uint32_t input = plan_.inputs[alias_.input].buffer, copy = buffers_.add_copy_of(input, at);
    plan_.steps.insert(plan_.steps.begin() + at,
                       {runtime::CopyStep{input, copy}, "copy " + plan_.inputs[alias_.input].name, "", 0});
    built_.step_group.insert(built_.step_group.begin() + at, built_.step_group[update]);
    built_.step_report.insert(built_.step_report.begin() + at, {built_.step_report[update].first, -1});
    std::map<uint32_t, uint32_t> views;  // of the input -> of the copy
    const auto read_copy = [&](uint32_t& buffer, size_t step) {
      if (!is_input(buffer)) return;
      const auto [found, is_new] = views.try_emplace(buffer, copy);
      if (is_new && buffer != input) found->second = buffers_.add_view_of(copy, plan_.buffers[buffer].shape);
      buffer = found->second;
      buffers_.keep_until(copy, static_cast<int64_t>(step));
    };
    for (size_t s = update + 1; s < plan_.steps.size(); ++s) {
      for_each_operand(plan_.steps[s], [&](uint32_t& buffer) { read_copy(buffer, s); });
    }
    for (runtime::Port& port : plan_.outputs) read_copy(port.buffer, plan_.steps.size());
  }

  BuiltPlan& built_;
  Plan& plan_;
  PlanBuffers& buffers_;
  runtime::Alias alias_;
};

}  // namespace

std::vector<size_t> set_aliases(const CompileOptions& options, Graph& graph) {
  for (const auto& [to, from] : options.alias) set_pattern(graph, to, from);
  std::vector<size_t> optional;
  if (!options.alias_updates) return optional;
  std::set<int32_t> taken;
  for (const Graph::Port& port : graph.outputs()) taken.insert(port.alias);
  for (size_t output = 0; output < graph.outputs().size(); ++output) {
    const Graph::Port& port = graph.outputs()[output];
    const int32_t input = passes::input_behind(graph, port.value);
    const bool is_itself = input != Graph::kNoAlias && graph.inputs()[static_cast<size_t>(input)].value == port.value;
    if (port.alias != Graph::kNoAlias || is_itself || input == Graph::kNoAlias || !taken.insert(input).second) continue;
    graph.set_alias(output, input);
    optional.push_back(output);
  }
  return optional;
}

void drop_copied_aliases(const std::vector<size_t>& optional, Graph& graph) {
  for (const size_t output : optional) {
    if (!passes::is_updated_in_place(graph, graph.outputs()[output])) graph.set_alias(output, Graph::kNoAlias);
  }
}

void keep_old_values(BuiltPlan& built, PlanBuffers& buffers, CompileReport& report) {
  const Plan& plan = *built.plan;
  for (const runtime::Alias& alias : plan.aliases) {
    const runtime::Port& output = plan.outputs[alias.output];
    AliasReport told{output.name, plan.inputs[alias.input].name, plan.buffers[output.buffer].bytes, ""};
    if (const std::string reader = OldValue(built, buffers, alias).keep(); !reader.empty()) {
      told.why_copied = fmt::format("the input is copied first, because {} reads it after the update begins", reader);
    }
    if (!alias.partial) {
      told.why_copied = "its value is none that replaces elements of the input, so it is copied there at the end";
    }
    report.aliases.push_back(std::move(told));
  }
}

}  // namespace heddle::driver
