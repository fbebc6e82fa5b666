#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "driver/plan/built_plan.h"
#include "ir/analysis/placement.h"
#include "ir/graph.h"
#include "runtime/arena.h"
#include "runtime/plan.h"
#include "schedule/product/packing.h"

namespace heddle::driver {

// The buffers of the plan of one graph. A value's buffer is added with the step that computes the value. Buffers in the
// arena get their offsets at the end (place()), when all lifetimes are known. A value that is stored inside another
// value (ir/analysis/placement.h) uses the buffer of the enclosing value. This buffer is added with the first value
// that is stored in it. Buffers are identified by their indices in Plan::buffers.
class PlanBuffers {
 public:
  PlanBuffers(const ir::Graph& graph, BuildContext& context, BuiltPlan& built);

  // Returns the buffer of a value that the current step reads. The buffer of a constant is added when it is first
  // read.
  uint32_t read(ir::ValueId value);
  // Returns the buffer of a value that the current step writes. If make_in_port() gave the value a port, this is the
  // port's buffer.
  uint32_t write(ir::ValueId value);
  // Extends the lifetime of `buffer` to the current step. Returns `buffer`.
  uint32_t touch(uint32_t buffer);
  // Makes `value` a view of `source` with another shape.
  void add_view(ir::ValueId value, ir::ValueId source);

  uint32_t add_input(const ir::Graph::Port& input);
  uint32_t add_output(uint32_t port);
  uint32_t add_arena(const ir::TensorType& type, std::string name);
  uint32_t add_workspace(int64_t bytes) { return add_arena({DType::kU8, {bytes}}, "workspace"); }
  // Adds a workspace that lives from the first step that touches it.
  uint32_t add_later_workspace(int64_t bytes);
  uint32_t add_constant(const Tensor& tensor, const ir::TensorType& type);
  // Adds a constant buffer with a table of numbers that a kernel reads.
  uint32_t add_numbers(const std::vector<int64_t>& numbers);
  // Returns the buffer of a constant operand in the packing that its kernel needs. Each packing of a value is created
  // only once.
  uint32_t packed_constant(ir::ValueId value, const schedule::Packing& packing);

  void make_in_port(ir::ValueId value, uint32_t port) { port_of_[value] = port; }
  bool has_port(ir::ValueId value) const { return port_of_[value] != kNone; }
  // `view` is a view of `under`. Assigns the port of `view` to `under`, unless `under` already has a port.
  void make_in_port_of(ir::ValueId under, ir::ValueId view) {
    if (!has_port(under)) port_of_[under] = port_of_[view];
  }

  // Shifts lifetimes to make room for a new step before step `step`.
  void make_room_at(int64_t step);
  // Adds an arena buffer of the same type as `buffer`, written at `step`.
  uint32_t add_copy_of(uint32_t buffer, int64_t step);
  // Adds a buffer with the memory of `buffer` and another shape.
  uint32_t add_view_of(uint32_t buffer, const Shape& shape);
  void keep_until(uint32_t buffer, int64_t step) { lifetimes_[static_cast<size_t>(slots_[buffer])].last = step; }

  // Makes the lifetime of a buffer include all steps from `first` to `last`.
  void keep_alive(uint32_t buffer, int64_t first, int64_t last);
  // Identifies the memory of a buffer: equal numbers mean that buffers share or may share memory. Constants, and
  // inputs that no step writes, have schedule::kConstantMemory. Call this before buffers get their offsets.
  int64_t memory_of(uint32_t buffer) const;

  // Assigns offsets to the buffers in the arena, and sets the plan's arena size.
  void place();

 private:
  static constexpr uint32_t kNone = ~0u;
  struct PackedConstant {
    ir::ValueId value;
    schedule::Packing packing;
    uint32_t buffer;
  };

  // The value in whose memory `value` is stored; `value` itself if it has separate memory.
  ir::ValueId host_of(ir::ValueId value) const;
  int64_t step() const { return static_cast<int64_t>(plan_.steps.size()); }
  uint32_t add(runtime::Buffer buffer, int64_t slot = -1);
  uint32_t add_tensor(Tensor tensor, const ir::TensorType& type);

  const ir::Graph& graph_;
  BuildContext& context_;
  BuiltPlan& built_;
  runtime::Plan& plan_;
  const ir::Placements placed_;
  std::vector<int64_t> slots_;  // by buffer: index of its lifetime; -1: not in the arena
  std::vector<runtime::Lifetime> lifetimes_;
  std::vector<uint32_t> port_of_;  // by value
  std::vector<PackedConstant> packed_;
};

}  // namespace heddle::driver
