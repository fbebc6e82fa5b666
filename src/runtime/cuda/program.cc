#include "runtime/cuda/program.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/check.h"
#include "runtime/cuda/step_scope.h"

namespace heddle::runtime {
namespace {

// Beyond so many launches an unrolled loop costs more (memory of the graph, time to make it) than a launch per
// iteration.
constexpr int64_t kMostActions = 20000;
// What kernels may assume of the addresses of operands.
constexpr int64_t kOperandAlignment = 16;
constexpr uint8_t kTrue = 1;

template <typename T>
std::optional<T> known(const CudaValue& value) {
  if (value.host() == nullptr) return std::nullopt;
  T result{};
  std::memcpy(&result, value.host(), sizeof result);
  return result;
}

// Launches of one run of a plan, loops of known length unrolled.
int64_t action_count(const Plan& plan) {
  int64_t count = 0;
  for (const Step& step : plan.steps) {
    int64_t actions = 1;
    if (const auto* kernels = std::get_if<CudaStep>(&step.action)) {
      actions = static_cast<int64_t>(kernels->launches.size());
    } else if (const auto* loop = std::get_if<LoopStep>(&step.action)) {
      const int64_t trip = std::clamp<int64_t>(loop->trip_bound, 1, CudaNumbers::kMost);
      actions = trip * action_count(*loop->body);
    } else if (const auto* branch = std::get_if<BranchStep>(&step.action)) {
      actions = std::max(action_count(*branch->then_body), action_count(*branch->else_body));
    }
    count = std::min(count + actions, kMostActions + 1);
  }
  return count;
}

class Binder {
 public:
  explicit Binder(CudaMemory& memory) : memory_(memory), code_(memory.code()) {}

  // What the plan does with these inputs, appended to `program`; where its outputs are. `outputs` are addresses for
  // what is made in an output.
  std::vector<CudaValue> run(const Plan& plan, std::span<const CudaValue> inputs, std::span<const uint64_t> outputs,
                             uint64_t arena, CudaProgram& program, bool outermost) {
    std::vector<CudaValue> values;
    for (const Buffer& buffer : plan.buffers) {
      switch (buffer.place) {
        case Place::kArena:
          values.push_back({.device = arena + static_cast<uint64_t>(buffer.offset)});
          break;
        case Place::kConstant:
          values.push_back({.constant = &plan.constants[buffer.index]});
          break;
        case Place::kInput:
          values.push_back(inputs[buffer.index]);
          break;
        case Place::kOutput:
          values.push_back({.device = outputs[buffer.index]});
          break;
      }
    }
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      if (outermost) step_ = i;
      std::visit([&](const auto& action) { add(plan, action, values, program); }, plan.steps[i].action);
    }
    std::vector<CudaValue> results;
    for (const Port& port : plan.outputs) results.push_back(values[port.buffer]);
    if (outermost) buffers = std::move(values);
    return results;
  }

  // Copies inputs to where outputs that the plan writes in part lie, unless that is one memory.
  void fill_aliases(const Plan& plan, CudaProgram& program) {
    for (const Alias& alias : plan.aliases) {
      if (!alias.partial) continue;
      copy(program, memory_.output(alias.output), memory_.input(alias.input),
           plan.buffers[plan.inputs[alias.input].buffer].bytes);
    }
  }

  // Copies to their places the outputs that no step made there.
  void deliver(const Plan& plan, const std::vector<CudaValue>& results, CudaProgram& program) {
    for (size_t i = 0; i < results.size(); ++i) {
      copy(program, memory_.output(i), device(results[i]), plan.buffers[plan.outputs[i].buffer].bytes);
    }
  }

  std::vector<CudaValue> buffers;  // of the outermost plan

 private:
  using Values = std::vector<CudaValue>;

  uint64_t device(const CudaValue& value) {
    if (value.device != 0) return value.device;
    if (value.constant != nullptr) return code_.constant(*value.constant);
    if (value.input >= 0) return memory_.input(static_cast<size_t>(value.input));
    return 0;  // in an arena of no bytes
  }

  void append(CudaProgram& program, CudaAction action) {
    if (program.nodes.empty() || !std::holds_alternative<CudaSegment>(program.nodes.back().what)) {
      program.nodes.push_back({CudaSegment{}, step_});
    }
    action.step = step_;
    std::get<CudaSegment>(program.nodes.back().what).actions.push_back(std::move(action));
  }

  void copy(CudaProgram& program, uint64_t to, uint64_t from, int64_t bytes) {
    if (to != from && bytes > 0) append(program, {CudaCopy{to, from, static_cast<size_t>(bytes)}, 0});
  }

  void add(const Plan&, const KernelStep&, const Values&, CudaProgram&) { HEDDLE_CHECK(false, "a kernel for a CPU"); }

  void add(const Plan&, const CudaStep& step, const Values& values, CudaProgram& program) {
    std::vector<uint64_t> operands;
    for (const uint32_t buffer : step.operands) operands.push_back(device(values[buffer]));
    operands.push_back(memory_.counters());
    for (const CudaLaunch& launch : step.launches) {
      append(program, {CudaBoundLaunch(code_.context(), code_.function(launch.symbol), launch, operands), 0});
    }
  }

  void add(const Plan& plan, const ReferenceStep& step, const Values& values, CudaProgram& program) {
    CudaHostCall call{&step, &plan, {}, {}};
    for (const uint32_t buffer : step.parameters) {
      CudaValue value = values[buffer];
      // What the host does not have comes from the device.
      if (value.host() == nullptr && value.input < 0) value.device = device(value);
      call.parameters.push_back(value);
    }
    for (const uint32_t buffer : step.results) call.results.push_back(device(values[buffer]));
    program.nodes.push_back({std::move(call), step_});
  }

  void add(const Plan& plan, const CopyStep& step, const Values& values, CudaProgram& program) {
    copy(program, device(values[step.to]), device(values[step.from]), plan.buffers[step.to].bytes);
  }

  void add(const Plan&, const BranchStep& step, const Values& values, CudaProgram& program) {
    if (const auto condition = known<uint8_t>(values[step.condition])) {
      return add_branch(step, *(*condition != 0 ? step.then_body : step.else_body), values, program);
    }
    auto branch = std::make_unique<CudaBranch>();
    branch->condition_at = device(values[step.condition]);
    add_branch(step, *step.then_body, values, branch->then_body);
    add_branch(step, *step.else_body, values, branch->else_body);
    program.nodes.push_back({std::move(branch), step_});
  }

  void add_branch(const BranchStep& step, const Plan& body, const Values& values, CudaProgram& program) {
    Values inputs;
    std::vector<uint64_t> outputs;
    for (const uint32_t buffer : step.captured) inputs.push_back(values[buffer]);
    for (const uint32_t buffer : step.results) outputs.push_back(device(values[buffer]));
    const Values results = run(body, inputs, outputs, device(values[step.workspace]), program, false);
    for (size_t k = 0; k < outputs.size(); ++k) {
      copy(program, outputs[k], device(results[k]), body.buffers[body.outputs[k].buffer].bytes);
    }
  }

  // --- loops -----------------------------------------------------------------------------------------------------

  // The loop with everything that both ways of running it need.
  struct LoopParts {
    const LoopStep& step;
    const Plan& body;
    LoopLayout layout;
    size_t states;
    uint64_t workspace;
    Values initial, invariants;
    std::vector<uint64_t> final_states, stacked;
    std::vector<int64_t> state_bytes, slice_bytes;
  };

  LoopParts parts_of(const LoopStep& step, const Values& values) {
    LoopParts p{step, *step.body, layout_of(step), step.states.size(), device(values[step.workspace]), {}, {}, {}, {},
                {},   {}};
    const auto bytes = [&](size_t port) { return p.body.buffers[p.body.outputs[port].buffer].bytes; };
    for (size_t k = 0; k < p.states; ++k) {
      p.initial.push_back(values[step.states[k]]);
      p.final_states.push_back(device(values[step.final_states[k]]));
      p.state_bytes.push_back(bytes(1 + k));
    }
    for (const uint32_t buffer : step.invariants) p.invariants.push_back(values[buffer]);
    for (size_t k = 0; k < step.stacked.size(); ++k) {
      p.stacked.push_back(device(values[step.stacked[k]]));
      p.slice_bytes.push_back(bytes(1 + p.states + k));
    }
    return p;
  }

  // Whether the body says that it runs again whenever it is asked: nullopt where only a run can tell.
  static std::optional<bool> body_condition(const LoopParts& p) {
    const Buffer& buffer = p.body.buffers[p.body.outputs[0].buffer];
    if (buffer.place == Place::kConstant) {
      return known<uint8_t>({.constant = &p.body.constants[buffer.index]}).value() != 0;
    }
    if (buffer.place != Place::kInput) return std::nullopt;
    if (buffer.index == 1) return true;
    if (buffer.index < 2 + p.states) return std::nullopt;
    const auto invariant = known<uint8_t>(p.invariants[buffer.index - 2 - p.states]);
    return invariant ? std::optional(*invariant != 0) : std::nullopt;
  }

  void add(const Plan&, const LoopStep& step, const Values& values, CudaProgram& program) {
    const LoopParts p = parts_of(step, values);
    std::optional<int64_t> trip = known<int64_t>(values[step.trip]);
    if (trip && step.trip_bound >= 0) trip = std::min(*trip, step.trip_bound);
    if (trip) trip = std::max<int64_t>(*trip, 0);
    const auto first = known<uint8_t>(values[step.condition]);
    const std::optional<bool> again = body_condition(p);
    if (first && *first == 0) trip = 0;
    if (trip && again == false) trip = std::min<int64_t>(*trip, 1);
    const bool counted = trip && (*trip == 0 || (first && (again || *trip == 1)));
    if (counted && *trip <= CudaNumbers::kMost && *trip * action_count(p.body) <= kMostActions) {
      return unroll(p, *trip, program);
    }
    auto loop = std::make_unique<CudaLoop>();
    loop->trip = trip;
    if (!trip) loop->trip_at = device(values[step.trip]);
    if (first) loop->first = *first != 0;
    if (!first) loop->first_at = device(values[step.condition]);
    loop->always = again.value_or(false);
    loop->bound = step.trip_bound;
    add_loop(p, *loop);
    program.nodes.push_back({std::move(loop), step_});
  }

  // Where the body writes slice `index` of a stacked result: in place, unless that would break the alignment which
  // kernels rely on. Two places alternate, since a state may be a slice of the iteration before.
  uint64_t slice_place(const LoopParts& p, size_t k, int64_t index) {
    if (p.slice_bytes[k] % kOperandAlignment == 0) {
      return p.stacked[k] + static_cast<uint64_t>(index * p.slice_bytes[k]);
    }
    uint64_t& place = slices_[{&p.step, k, index % 2}];
    if (place == 0) place = memory_.extra(static_cast<size_t>(p.slice_bytes[k]));
    return place;
  }

  void unroll(const LoopParts& p, int64_t trip, CudaProgram& program) {
    Values current = p.initial;
    for (int64_t i = 0; i < trip; ++i) {
      Values inputs = {{.device = code_.numbers().device(i), .known = code_.numbers().host(i)},
                       {.device = code_.numbers().one(), .known = &kTrue}};
      inputs.insert(inputs.end(), current.begin(), current.end());
      inputs.insert(inputs.end(), p.invariants.begin(), p.invariants.end());
      // States alternate between two buffers such that the last iteration writes the result in place.
      std::vector<uint64_t> outputs = {p.workspace + static_cast<uint64_t>(p.layout.condition_out)};
      const bool to_result = (trip - 1 - i) % 2 == 0;
      for (size_t k = 0; k < p.states; ++k) {
        outputs.push_back(to_result ? p.final_states[k] : p.workspace + static_cast<uint64_t>(p.layout.spare[k]));
      }
      for (size_t k = 0; k < p.stacked.size(); ++k) outputs.push_back(slice_place(p, k, i));
      const Values results =
          run(p.body, inputs, outputs, p.workspace + static_cast<uint64_t>(p.layout.arena), program, false);
      for (size_t k = 0; k < p.stacked.size(); ++k) {
        copy(program, p.stacked[k] + static_cast<uint64_t>(i * p.slice_bytes[k]), device(results[1 + p.states + k]),
             p.slice_bytes[k]);
      }
      for (size_t k = 0; k < p.states; ++k) current[k] = results[1 + k];
    }
    for (size_t k = 0; k < p.states; ++k) copy(program, p.final_states[k], device(current[k]), p.state_bytes[k]);
    for (size_t k = 0; k < p.stacked.size(); ++k) {
      const int64_t missing = (p.step.trip_bound - trip) * p.slice_bytes[k];
      if (missing <= 0) continue;
      append(
          program,
          {CudaZeros{p.stacked[k] + static_cast<uint64_t>(trip * p.slice_bytes[k]), static_cast<size_t>(missing)}, 0});
    }
  }

  void add_loop(const LoopParts& p, CudaLoop& loop) {
    loop.iteration_at = memory_.extra(sizeof(int64_t));
    Values inputs = {{.device = loop.iteration_at}, {.device = code_.numbers().one(), .known = &kTrue}};
    std::vector<uint64_t> outputs = {memory_.extra(1)};
    for (size_t k = 0; k < p.states; ++k) {
      const uint64_t place = memory_.extra(static_cast<size_t>(p.state_bytes[k]));
      const auto bytes = static_cast<size_t>(p.state_bytes[k]);
      inputs.push_back({.device = place});
      outputs.push_back(p.workspace + static_cast<uint64_t>(p.layout.spare[k]));
      loop.begin.push_back({place, device(p.initial[k]), bytes});
      loop.end.push_back({p.final_states[k], place, bytes});
    }
    inputs.insert(inputs.end(), p.invariants.begin(), p.invariants.end());
    for (size_t k = 0; k < p.stacked.size(); ++k) {
      outputs.push_back(memory_.extra(static_cast<size_t>(p.slice_bytes[k])));
    }
    const Values results =
        run(p.body, inputs, outputs, p.workspace + static_cast<uint64_t>(p.layout.arena), loop.body, false);
    loop.again_at = device(results[0]);
    for (size_t k = 0; k < p.states; ++k) {
      loop.next.push_back({loop.end[k].from, device(results[1 + k]), loop.end[k].bytes});
    }
    for (size_t k = 0; k < p.stacked.size(); ++k) {
      loop.stacked.push_back({device(results[1 + p.states + k]), p.stacked[k], static_cast<size_t>(p.slice_bytes[k])});
    }
  }

  CudaMemory& memory_;
  CudaCode& code_;
  size_t step_ = 0;
  std::map<std::tuple<const LoopStep*, size_t, int64_t>, uint64_t> slices_;
};

}  // namespace

void enqueue(const CudaContext& context, const CudaCopy& copy, CudaDriver::Handle stream) {
  if (copy.to == copy.from || copy.bytes == 0) return;
  context.check(context.driver().copy_async(copy.to, copy.from, copy.bytes, stream), "cuMemcpyDtoDAsync");
}

void CudaAction::enqueue(const CudaContext& context, CudaDriver::Handle stream, bool behind_kernel) const {
  const CudaStepScope scope(step);
  if (const auto* launch = std::get_if<CudaBoundLaunch>(&what)) {
    launch->enqueue(context, stream, behind_kernel);
  } else if (const auto* copy = std::get_if<CudaCopy>(&what)) {
    runtime::enqueue(context, *copy, stream);
  } else {
    const auto& zeros = std::get<CudaZeros>(what);
    context.check(context.driver().set_d8_async(zeros.to, 0, zeros.bytes, stream), "cuMemsetD8Async");
  }
}

void enqueue_actions(const CudaContext& context, std::span<const CudaAction> actions, CudaDriver::Handle stream) {
  const bool overlap = may_overlap(context);
  bool behind_kernel = false;
  for (const CudaAction& action : actions) {
    action.enqueue(context, stream, behind_kernel);
    behind_kernel = overlap && std::holds_alternative<CudaBoundLaunch>(action.what);
  }
}

CudaBinding bind(const Plan& plan, CudaMemory& memory, bool delivers) {
  std::vector<CudaValue> inputs;
  std::vector<uint64_t> outputs;
  for (size_t i = 0; i < plan.inputs.size(); ++i) inputs.push_back({.input = static_cast<int>(i)});
  for (const FixedInput& fixed : plan.fixed) inputs[fixed.input].known = fixed.value.data();
  // An output that no step makes (an input or a constant is returned) needs no memory.
  std::vector<bool> made(plan.outputs.size());
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.place == Place::kOutput) made[buffer.index] = true;
  }
  for (size_t i = 0; i < plan.outputs.size(); ++i) outputs.push_back(made[i] ? memory.output(i) : 0);
  CudaBinding binding;
  Binder binder(memory);
  binder.fill_aliases(plan, binding.program);
  binding.outputs = binder.run(plan, inputs, outputs, memory.arena(), binding.program, true);
  if (delivers) binder.deliver(plan, binding.outputs, binding.program);
  binding.buffers = std::move(binder.buffers);
  return binding;
}

}  // namespace heddle::runtime
