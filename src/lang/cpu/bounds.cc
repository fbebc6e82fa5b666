#include "lang/cpu/bounds.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::lang::cpu {

std::string Bounds::name(Lines& row, const std::string& bound) {
  const auto found = std::find(texts_.begin(), texts_.end(), bound);
  const std::string name = fmt::format("bound{}", found - texts_.begin());
  if (found == texts_.end()) {
    row.add(fmt::format("const int64_t {} = {};", name, bound));
    texts_.push_back(bound);
  }
  return name;
}

std::string Bounds::arguments(int64_t extent) const {
  std::string names;
  for (size_t i = 0; i < texts_.size(); ++i) names += fmt::format("{}bound{}", i == 0 ? "" : ", ", i);
  return empty() ? fmt::format("{}", extent) : fmt::format("bounds_of({}), {}", names, extent);
}

bool is_counted(const State& state, ValueId index) {
  const Op* op = state.uses.definer(index);
  if (op == nullptr || !state.is_pending(index)) return false;
  const bool passes = is_shape_op(op->code) || op->code == OpCode::kHint || op->code == OpCode::kAdd;
  if (!passes) return op->code == OpCode::kIota || op->code == OpCode::kConstant;
  return std::all_of(op->operands.begin(), op->operands.end(), [&](ValueId each) { return is_counted(state, each); });
}

}  // namespace heddle::lang::cpu
