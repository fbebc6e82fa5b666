#pragma once

#include <array>
#include <functional>
#include <vector>

#include "lang/interpret/interpret.h"
#include "lang/interpret/memory.h"

namespace heddle::lang {

// The state of an interpreted program. The cells of a view are its base, its sizes, its strides, and a flag for padding
// with NaN.
struct Environment {
  const Kernel& kernel;
  const InterpretOptions& options;
  Memory memory;
  std::array<int64_t, 3> grid, program{};
  std::vector<Cells> values;
  // Evaluates a region of scalar ops with these arguments, for `lanes` lanes at once. Returns the values that the
  // region yields.
  std::function<std::vector<Cells>(const Region& region, std::vector<Cells> arguments, size_t lanes)> evaluate;

  const Type& type(ValueId value) const { return kernel.type(value); }
  const Cells& get(ValueId value) const { return values[static_cast<size_t>(value)]; }
  void set(ValueId value, Cells cells) { values[static_cast<size_t>(value)] = std::move(cells); }
  const Cells& operand(const Op& op, size_t i) const { return get(op.operands[i]); }
  const Type& operand_type(const Op& op, size_t i) const { return type(op.operands[i]); }
  size_t elements(ValueId value) const { return static_cast<size_t>(type(value).elements()); }
};

// Each function executes one kind of non-elementwise ops. Returns false if the op is of another kind.
bool run_shape_op(Environment& env, const Op& op);
bool run_axis_op(Environment& env, const Op& op);
bool run_product_op(Environment& env, const Op& op);
bool run_memory_op(Environment& env, const Op& op);
bool run_effect_op(Environment& env, const Op& op);

}  // namespace heddle::lang
