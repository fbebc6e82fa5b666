#include "lang/cpu/bounds.h"

#include <fmt/format.h>

#include <algorithm>

#include "lang/cpu/lanes.h"

namespace heddle::lang::cpu {
namespace {

// Whether an index is a counted one and constants: nothing in it can overflow.
bool is_counted(const State& state, ValueId index, std::set<ValueId>& seen) {
  if (!seen.insert(index).second) return true;  // it is, unless another way has said no
  const Op* op = state.uses.definer(index);
  if (op == nullptr || !state.is_pending(index)) return false;
  const bool passes = is_shape_op(op->code) || op->code == OpCode::kHint || op->code == OpCode::kAdd;
  if (!passes) return op->code == OpCode::kIota || op->code == OpCode::kConstant;
  return std::all_of(op->operands.begin(), op->operands.end(),
                     [&](ValueId each) { return is_counted(state, each, seen); });
}

}  // namespace

std::string Bounds::declare(Writer& row, const std::string& bound) {
  const auto found = std::find(texts_.begin(), texts_.end(), bound);
  const std::string name = fmt::format("bound{}", found - texts_.begin());
  if (found == texts_.end()) {
    row.line("const int64_t {} = {};", name, bound);
    texts_.push_back(bound);
  }
  return name;
}

std::string Bounds::argument() const {
  std::string names;
  for (size_t i = 0; i < texts_.size(); ++i) names += fmt::format("{}bound{}", i == 0 ? "" : ", ", i);
  return empty() ? "" : fmt::format("bounds_of({}), ", names);
}

std::optional<std::string> Bounds::name_of(Lanes& lanes, const PrefixMask& mask) {
  if (mask.bounds.empty()) return std::nullopt;
  std::string text;
  for (const PrefixMask::Bound& bound : mask.bounds) {
    const Coords first = without_lanes(bound.coords);
    if (is_inner(first)) return std::nullopt;
    const std::string limit = lanes.at(bound.limit, first).name, index = lanes.at(bound.index, first).name;
    const std::string count =
        fmt::format("int64_t({}.v) - int64_t({}.v){}", limit, index, bound.inclusive ? " + 1" : "");
    text = text.empty() ? count : fmt::format("smaller({}, {})", text, count);
  }
  for (const PrefixMask::Uniform& uniform : mask.uniform) {
    if (is_inner(uniform.coords)) return std::nullopt;
    text = fmt::format("{}[0] ? {} : 0", lanes.at(uniform.mask, uniform.coords).name, text);
  }
  return declare(lanes.row, text);
}

std::optional<std::string> Bounds::compared(Lanes& lanes, ValueId value, const Coords& coords) {
  if (!has_lanes(coords)) return std::nullopt;
  const auto mask = prefix_mask(state_, value, coords);
  std::set<ValueId> seen;
  if (!mask || mask->bounds.size() != 1 || !is_counted(state_, mask->bounds[0].index, seen)) return std::nullopt;
  const auto name = name_of(lanes, *mask);
  return name ? std::optional(fmt::format("within<W>(form, index_constant<W>{{}}, {} - c)", *name)) : std::nullopt;
}

bool Bounds::is_alike_behind(Lanes& lanes, ValueId value, const Coords& coords) {
  if (alike_.contains(value) || lane_stride(state_, value, coords) == 0) return true;
  const Op* op = state_.uses.definer(value);
  if (op == nullptr) return false;
  const auto alike = [&](size_t operand) { return is_alike_behind(lanes, op->operands[operand], coords); };
  const auto guards = [&](size_t operand) {
    const auto mask = prefix_mask(state_, op->operands[operand], coords);
    return mask && name_of(lanes, *mask).has_value();
  };
  if (op->code == OpCode::kLoad) {
    return op->operands.size() > 1 && guards(1) && (op->operands.size() == 2 || alike(2));
  }
  if (op->code == OpCode::kSelect && guards(0)) return alike(2);
  if (!info_of(op->code).has(kElementwise) || op->operands.empty()) return false;
  bool all = true;
  for (size_t i = 0; i < op->operands.size(); ++i) all = all && alike(i);
  if (all) alike_.insert(value);
  return all;
}

}  // namespace heddle::lang::cpu
