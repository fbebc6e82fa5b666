#include "driver/plan/plan_buffers.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/file/file.h"
#include "driver/plan/constant_pool.h"
#include "driver/plan/group_facts.h"
#include "schedule/sequence/sequence.h"

namespace heddle::driver {

using ir::TensorType;
using ir::ValueId;
using runtime::Buffer;
using runtime::Place;

namespace {

Buffer buffer_of(Place place, uint32_t index, const TensorType& type, std::string name) {
  Buffer buffer;
  buffer.place = place;
  buffer.index = index;
  buffer.dtype = type.dtype;
  buffer.shape = type.shape;
  buffer.bytes = bytes_of(type);
  buffer.name = std::move(name);
  return buffer;
}

}  // namespace

PlanBuffers::PlanBuffers(const ir::Graph& graph, BuildContext& context, BuiltPlan& built)
    : graph_(graph),
      context_(context),
      built_(built),
      plan_(*built.plan),
      placed_(ir::find_placements(graph)),
      port_of_(graph.value_count(), kNone) {}

ValueId PlanBuffers::host_of(ValueId value) const {
  const auto placed = placed_.find(value);
  return placed == placed_.end() ? value : placed->second.host;
}

uint32_t PlanBuffers::add(Buffer buffer, int64_t slot) {
  plan_.buffers.push_back(std::move(buffer));
  slots_.push_back(slot);
  return static_cast<uint32_t>(plan_.buffers.size() - 1);
}

uint32_t PlanBuffers::read(ValueId value) {
  value = host_of(value);
  auto found = built_.buffer_of.find(value);
  if (found == built_.buffer_of.end()) {
    const Tensor* constant = graph_.constant_of(value);
    HEDDLE_CHECK(constant != nullptr, "value {} is used before it is made", value);
    found = built_.buffer_of.emplace(value, add_constant(*constant, graph_.type(value))).first;
  }
  return touch(found->second);
}

uint32_t PlanBuffers::write(ValueId value) {
  value = host_of(value);
  if (const auto found = built_.buffer_of.find(value); found != built_.buffer_of.end()) return touch(found->second);
  const uint32_t index = has_port(value) ? add_output(port_of_[value]) : add_arena(graph_.type(value), "");
  built_.buffer_of.emplace(value, index);
  return index;
}

uint32_t PlanBuffers::touch(uint32_t buffer) {
  if (slots_[buffer] < 0) return buffer;
  runtime::Lifetime& lifetime = lifetimes_[static_cast<size_t>(slots_[buffer])];
  lifetime = {lifetime.bytes, std::min(lifetime.first, step()), step()};
  return buffer;
}

uint32_t PlanBuffers::add_later_workspace(int64_t bytes) {
  constexpr int64_t kNever = INT64_MAX / 2;
  const uint32_t buffer = add_workspace(bytes);
  lifetimes_.back().first = kNever;
  return buffer;
}

void PlanBuffers::add_view(ValueId value, ValueId source) {
  HEDDLE_CHECK(!placed_.contains(value) && !placed_.contains(source), "a view of what does not lie by itself");
  built_.buffer_of.emplace(value, add_view_of(read(source), graph_.shape(value)));
}

uint32_t PlanBuffers::add_view_of(uint32_t buffer, const Shape& shape) {
  Buffer view = plan_.buffers[buffer];
  view.shape = shape;
  return add(std::move(view), slots_[buffer]);
}

void PlanBuffers::make_room_at(int64_t step) {
  for (runtime::Lifetime& lifetime : lifetimes_) {
    lifetime.first += lifetime.first >= step;
    lifetime.last += lifetime.last >= step;
  }
}

uint32_t PlanBuffers::add_copy_of(uint32_t buffer, int64_t step) {
  const Buffer& from = plan_.buffers[buffer];
  const uint32_t copy = add_arena({from.dtype, from.shape}, from.name);
  lifetimes_.back().first = lifetimes_.back().last = step;
  return copy;
}

uint32_t PlanBuffers::add_input(const ir::Graph::Port& input) {
  const auto position = static_cast<uint32_t>(plan_.inputs.size());
  const uint32_t index = add(buffer_of(Place::kInput, position, graph_.type(input.value), input.name));
  built_.buffer_of.emplace(input.value, index);
  return index;
}

uint32_t PlanBuffers::add_output(uint32_t port) {
  const ir::Graph::Port& output = graph_.outputs()[port];
  return add(buffer_of(Place::kOutput, port, graph_.type(output.value), output.name));
}

uint32_t PlanBuffers::add_arena(const TensorType& type, std::string name) {
  Buffer buffer = buffer_of(Place::kArena, 0, type, std::move(name));
  lifetimes_.push_back({buffer.bytes, step(), step()});
  return add(std::move(buffer), static_cast<int64_t>(lifetimes_.size() - 1));
}

uint32_t PlanBuffers::add_constant(const Tensor& tensor, const TensorType& type) {
  return add_tensor(context_.constants != nullptr ? context_.constants->shared(tensor) : tensor, type);
}

uint32_t PlanBuffers::add_numbers(const std::vector<int64_t>& numbers) {
  const Shape shape{static_cast<int64_t>(numbers.size())};
  return add_tensor(Tensor::of<int64_t>(DType::kI64, shape, std::span<const int64_t>(numbers)), {DType::kI64, shape});
}

uint32_t PlanBuffers::add_tensor(Tensor tensor, const TensorType& type) {
  Buffer buffer = buffer_of(Place::kConstant, static_cast<uint32_t>(plan_.constants.size()), type, "");
  buffer.bytes = static_cast<int64_t>(tensor.bytes());
  context_.report.constant_bytes += buffer.bytes;
  plan_.constants.push_back(std::move(tensor));
  return add(std::move(buffer));
}

uint32_t PlanBuffers::packed_constant(ValueId value, const schedule::Packing& packing) {
  for (const PackedConstant& known : packed_) {
    if (known.value == value && known.packing == packing) return known.buffer;
  }
  const Tensor* dense = graph_.constant_of(value);
  HEDDLE_CHECK(dense != nullptr, "a packed operand ({}) is no constant", packing.kind);
  uint32_t buffer = 0;
  if (context_.constants != nullptr) {
    buffer = add_tensor(context_.constants->packed(*dense, packing), graph_.type(value));
  } else {
    const TensorType type = schedule::packed_type(*dense, packing);
    const auto place = std::make_shared<char>();  // stands for the data, which is made where the plan is written
    buffer = add_tensor(Tensor::borrow(type.dtype, type.shape, place.get(), place), graph_.type(value));
    built_.makers.emplace(place.get(), [dense = *dense, packing](void* to) {
      schedule::pack_constant(dense, packing, to);
      release_pages(dense.data(), dense.bytes());
    });
  }
  packed_.push_back({value, packing, buffer});
  return buffer;
}

void PlanBuffers::keep_alive(uint32_t buffer, int64_t first, int64_t last) {
  if (slots_[buffer] < 0) return;
  runtime::Lifetime& lifetime = lifetimes_[static_cast<size_t>(slots_[buffer])];
  lifetime = {lifetime.bytes, std::min(lifetime.first, first), std::max(lifetime.last, last)};
}

int64_t PlanBuffers::memory_of(uint32_t buffer) const {
  const Buffer& b = plan_.buffers[buffer];
  const auto inputs = static_cast<int64_t>(graph_.inputs().size()),
             ports = inputs + static_cast<int64_t>(graph_.outputs().size());
  switch (b.place) {
    case Place::kConstant:
      return schedule::kConstantMemory;
    case Place::kInput: {
      const auto& outputs = graph_.outputs();
      const bool is_written = std::any_of(outputs.begin(), outputs.end(), [&](const ir::Graph::Port& port) {
        return port.alias == static_cast<int32_t>(b.index);
      });
      return is_written ? b.index : schedule::kConstantMemory;
    }
    case Place::kOutput: {
      const int32_t alias = graph_.outputs()[b.index].alias;
      return alias == ir::Graph::kNoAlias ? inputs + b.index : alias;
    }
    case Place::kArena:
      break;
  }
  return ports + slots_[buffer];
}

void PlanBuffers::place() {
  for (runtime::Lifetime& lifetime : lifetimes_) lifetime.first = std::min(lifetime.first, lifetime.last);
  const runtime::ArenaLayout layout = runtime::plan_arena(lifetimes_);
  for (size_t i = 0; i < plan_.buffers.size(); ++i) {
    if (slots_[i] >= 0) plan_.buffers[i].offset = layout.offsets[static_cast<size_t>(slots_[i])];
  }
  plan_.arena_bytes = layout.bytes;
}

}  // namespace heddle::driver
