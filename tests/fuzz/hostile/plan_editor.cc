#include "tests/fuzz/hostile/plan_editor.h"

#include <type_traits>

namespace heddle::fuzz {
namespace {

using runtime::Plan;

template <typename T>
void change(T& value, Rng& rng) {
  const uint64_t drawn = rng.chance(0.5) ? interesting(rng) : static_cast<uint64_t>(rng.range(-3, 9));
  value =
      static_cast<T>(rng.chance(0.4) ? static_cast<uint64_t>(value) + static_cast<uint64_t>(rng.range(-2, 2)) : drawn);
}

template <typename T>
T& any_of(std::vector<T>& items, Rng& rng) {
  return items[static_cast<size_t>(rng.range(0, static_cast<int64_t>(items.size()) - 1))];
}

// An item removed, repeated or swapped.
template <typename T>
void change_list(std::vector<T>& items, Rng& rng) {
  if (items.empty()) return;
  const auto at = items.begin() + rng.range(0, static_cast<int64_t>(items.size()) - 1);
  switch (rng.range(0, 2)) {
    case 0:
      items.erase(at);
      return;
    case 1: {
      const T copy = *at;
      items.insert(at, copy);
      return;
    }
    default:
      std::swap(*at, any_of(items, rng));
  }
}

void change_indices(std::vector<uint32_t>& indices, Rng& rng) {
  if (indices.empty() || rng.chance(0.3)) {
    indices.push_back(static_cast<uint32_t>(rng.range(0, 9)));
  } else if (rng.chance(0.6)) {
    change(any_of(indices, rng), rng);
  } else {
    change_list(indices, rng);
  }
}

void change_shape(Shape& shape, Rng& rng) {
  if (shape.empty() || rng.chance(0.2)) {
    shape.push_back(rng.range(0, 5));
  } else if (rng.chance(0.7)) {
    change(any_of(shape, rng), rng);
  } else {
    change_list(shape, rng);
  }
}

void change_type(DType& dtype, Rng& rng) {
  dtype = static_cast<DType>(rng.chance(0.9) ? rng.range(0, 24) : rng.range(0, 255));
}

void change_port(runtime::Port& port, Rng& rng) {
  switch (rng.range(0, 3)) {
    case 0:
      return change_type(port.dtype, rng);
    case 1:
      return change_shape(port.shape, rng);
    case 2:
      return change(port.buffer, rng);
    default:
      return change(port.index_bound, rng);
  }
}

void change_buffer(runtime::Buffer& buffer, Rng& rng) {
  switch (rng.range(0, 5)) {
    case 0:
      buffer.place = static_cast<runtime::Place>(rng.range(0, 5));
      return;
    case 1:
      return change(buffer.index, rng);
    case 2:
      return change(buffer.offset, rng);
    case 3:
      return change(buffer.bytes, rng);
    case 4:
      return change_type(buffer.dtype, rng);
    default:
      return change_shape(buffer.shape, rng);
  }
}

void edit_body(std::shared_ptr<const Plan>& body, Rng& rng) {
  if (body == nullptr) return;
  auto copy = std::make_shared<Plan>(*body);
  edit_plan(*copy, rng);
  body = std::move(copy);
}

void edit(runtime::KernelStep& step, Rng& rng) {
  if (rng.chance(0.5)) return change_indices(step.operands, rng);
  rng.chance(0.5) ? change(step.tasks, rng) : change(step.scratch_bytes, rng);
}

void edit(runtime::ReferenceStep& step, Rng& rng) {
  if (rng.chance(0.3)) return change_indices(step.parameters, rng);
  if (rng.chance(0.4)) return change_indices(step.results, rng);
  if (step.ir.empty()) return;
  const auto at = static_cast<size_t>(rng.range(0, static_cast<int64_t>(step.ir.size()) - 1));
  step.ir[at] = static_cast<char>(rng.chance(0.7) ? '0' + rng.range(0, 9) : rng.range(0, 255));
}

void edit(runtime::CopyStep& step, Rng& rng) {
  rng.chance(0.5) ? change(step.from, rng) : change(step.to, rng);
}

void edit(runtime::LoopStep& step, Rng& rng) {
  switch (rng.range(0, 7)) {
    case 0:
      return change(step.workspace, rng);
    case 1:
      return change(step.trip, rng);
    case 2:
      return change(step.condition, rng);
    case 3:
      return change(step.trip_bound, rng);
    case 4:
      return change_indices(rng.chance(0.5) ? step.states : step.invariants, rng);
    case 5:
      return change_indices(rng.chance(0.5) ? step.final_states : step.stacked, rng);
    default:
      return edit_body(step.body, rng);
  }
}

void edit(runtime::BranchStep& step, Rng& rng) {
  switch (rng.range(0, 4)) {
    case 0:
      return change(step.workspace, rng);
    case 1:
      return change(step.condition, rng);
    case 2:
      return change_indices(rng.chance(0.5) ? step.captured : step.results, rng);
    default:
      return edit_body(rng.chance(0.5) ? step.then_body : step.else_body, rng);
  }
}

void change_map(TensorMapDesc& map, Rng& rng) {
  switch (rng.range(0, 6)) {
    case 0:
      map.element = static_cast<TensorMapDesc::Element>(rng.range(0, 5));
      return;
    case 1:
      return change(map.operand, rng);
    case 2:
      return change(map.offset, rng);
    case 3:
      return change(map.extents[static_cast<size_t>(rng.range(0, 2))], rng);
    case 4:
      return change(map.strides[static_cast<size_t>(rng.range(0, 1))], rng);
    case 5:
      return change(map.outer[static_cast<size_t>(rng.range(0, 1))], rng);
    default:
      if (!map.windows) map.windows.emplace();
      return change(map.windows->size[static_cast<size_t>(rng.range(0, 1))], rng);
  }
}

void edit(runtime::CudaStep& step, Rng& rng) {
  if (rng.chance(0.2)) return change_indices(step.operands, rng);
  if (rng.chance(0.2)) return change(step.counter_bytes, rng);
  if (step.launches.empty()) return;
  CudaLaunch& launch = any_of(step.launches, rng);
  switch (rng.range(0, 7)) {
    case 0:
      return change(launch.grid[static_cast<size_t>(rng.range(0, 2))], rng);
    case 1:
      return change(launch.block, rng);
    case 2:
      return change(launch.shared_bytes, rng);
    case 3:
      return change(launch.cluster, rng);
    case 4:
      if (!launch.maps.empty()) return change_map(any_of(launch.maps, rng), rng);
      launch.maps.emplace_back();
      return;
    case 5:
      return change_list(launch.arguments, rng);
    case 6:
      if (!launch.arguments.empty()) change_list(any_of(launch.arguments, rng), rng);
      return;
    default:
      if (launch.pointers.empty()) return;
      PointerPatch& patch = any_of(launch.pointers, rng);
      int* const numbers[] = {&patch.argument, &patch.offset, &patch.operand};
      return change(*numbers[rng.range(0, 2)], rng);
  }
}

void change_step(runtime::Step& step, Rng& rng) {
  if (rng.chance(0.95)) {
    std::visit([&](auto& action) { edit(action, rng); }, step.action);
  } else {
    step.action = runtime::CopyStep{static_cast<uint32_t>(rng.range(0, 5)), static_cast<uint32_t>(rng.range(0, 5))};
  }
}

// The plan as the body of a branch in a plan that is like it.
void nest(Plan& plan, Rng& rng) {
  for (int64_t depth = rng.chance(0.9) ? rng.range(1, 4) : 31; depth > 0; --depth) {
    const auto body = std::make_shared<const Plan>(plan);
    auto other = std::make_shared<Plan>(plan);  // without steps: bodies of both kinds would double with each depth
    other->steps.clear();
    runtime::BranchStep branch{body, std::move(other), 0, 0, {}, {}};
    for (uint32_t i = 0; i < plan.inputs.size(); ++i) branch.captured.push_back(plan.inputs[i].buffer);
    for (uint32_t i = 0; i < plan.outputs.size(); ++i) branch.results.push_back(plan.outputs[i].buffer);
    plan.steps = {{std::move(branch), "nested", "", 0}};
  }
}

}  // namespace

void edit_plan(Plan& plan, Rng& rng) {
  const int64_t what = rng.range(0, 19);
  if (what < 7) {
    if (!plan.steps.empty()) change_step(any_of(plan.steps, rng), rng);
  } else if (what < 11) {
    if (!plan.buffers.empty()) change_buffer(any_of(plan.buffers, rng), rng);
  } else if (what < 14) {
    std::vector<runtime::Port>& ports = rng.chance(0.5) ? plan.inputs : plan.outputs;
    if (!ports.empty()) change_port(any_of(ports, rng), rng);
  } else if (what == 14) {
    change(plan.arena_bytes, rng);
  } else if (what == 15) {
    rng.chance(0.5) ? change_list(plan.buffers, rng) : change_list(plan.steps, rng);
  } else if (what == 16) {
    rng.chance(0.5) ? change_list(plan.inputs, rng) : change_list(plan.outputs, rng);
  } else if (what == 17) {
    const auto input = static_cast<uint32_t>(rng.range(0, 5));
    plan.fixed.push_back({input, Tensor(DType::kF32, {rng.range(0, 3)})});
  } else if (what == 18) {
    plan.texts.push_back({static_cast<uint32_t>(interesting(rng)), "text", Tensor::of_strings({1}, {"\xff\x1b"})});
  } else {
    nest(plan, rng);
  }
}

}  // namespace heddle::fuzz
