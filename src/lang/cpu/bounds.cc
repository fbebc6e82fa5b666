#include "lang/cpu/bounds.h"

#include <fmt/format.h>

#include <algorithm>

#include "lang/cpu/lanes.h"

namespace heddle::lang::cpu {

// An index of lane 0 as a sum of what is known outside of the loop over vectors and of `c`, their first index.
std::optional<std::string> Bounds::outside(ValueId index, const Coords& coords) const {
  const Held& held = state_.at(index);
  if (held.kind == Held::Kind::kScalar) return fmt::format("int64_t({}.v)", held.name);
  const Op* op = state_.uses.definer(index);
  if (held.kind == Held::Kind::kBuffer || op == nullptr) return std::nullopt;
  if (is_shape_op(op->code)) {
    const std::vector<int64_t>& from = state_.type(op->operands[0]).shape;
    if (from.empty()) return outside(op->operands[0], {});
    return outside(op->operands[0], without_units(from, operand_coords(state_.kernel, *op, coords)));
  }
  switch (op->code) {
    case OpCode::kHint:
      return outside(op->operands[0], coords);
    case OpCode::kConstant:
      return fmt::format("int64_t({})", op->attributes.integer("value"));
    case OpCode::kIota:
      if (coords[0].inner && coords[0].text != "c") return std::nullopt;
      return fmt::format("{} + {}", coords[0].text, op->attributes.integer("start"));
    case OpCode::kAdd: {
      const auto a = outside(op->operands[0], coords), b = outside(op->operands[1], coords);
      return a && b ? std::optional(*a + " + " + *b) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

std::optional<std::string> Bounds::count(const PrefixMask& mask, const std::string& lanes) {
  if (!twice || !mask.uniform.empty() || mask.bounds.size() != 1) return std::nullopt;
  const PrefixMask::Bound& bound = mask.bounds[0];
  const auto limit = outside(bound.limit, without_lanes(bound.coords)), index = outside(bound.index, bound.coords);
  if (!limit || !index) return std::nullopt;
  const std::string text = fmt::format("{} - ({}){}", *limit, *index, bound.inclusive ? " + 1" : "");
  if (std::find(bounds_.begin(), bounds_.end(), text) == bounds_.end()) bounds_.push_back(text);
  return fmt::format("within<W>(full, {}, {})", lanes, text);
}

std::optional<std::string> Bounds::comparison(ValueId value, const Coords& coords) {
  if (!has_lanes(coords)) return std::nullopt;
  const auto mask = prefix_mask(state_, value, coords);
  if (!mask || mask->bounds.size() != 1) return std::nullopt;
  const auto index = outside(mask->bounds[0].index, mask->bounds[0].coords);
  if (!index || index->find(".v") != std::string::npos) return std::nullopt;
  const auto text = count(*mask, "W");
  return text ? std::optional(fmt::format("active<W>({})", *text)) : std::nullopt;
}

Lines Bounds::body(const Lines& inner) const {
  if (bounds_.empty()) return inner;
  std::string within = "is_whole<W>(n)";
  for (const std::string& bound : bounds_) within += fmt::format(" && {} >= W", bound);
  Lines both;
  both.block(fmt::format("return in_two_ways({}, [&](auto full) __attribute__((always_inline))", within), inner, "});");
  return both;
}

}  // namespace heddle::lang::cpu
