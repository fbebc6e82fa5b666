#include "lang/cpu/strides.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace heddle::lang::cpu {

bool has_lanes(const Coords& coords) {
  return std::any_of(coords.begin(), coords.end(), [](const Index& index) { return index.lane; });
}

Coords first_lane(Coords coords) {
  for (Index& index : coords) {
    if (index.lane) index = {index.text, false, true};
  }
  return coords;
}

Coords without_lanes(Coords coords) {
  for (Index& index : coords) {
    if (index.lane) index = {"0"};
  }
  return coords;
}

std::string key_of(const Coords& coords) {
  std::string key;
  for (const Index& index : coords) key += index.text + (index.lane ? "*," : ",");
  return key;
}

bool is_shape_op(OpCode code) {
  return code == OpCode::kExpandDims || code == OpCode::kBroadcast || code == OpCode::kPermute ||
         code == OpCode::kSlice || code == OpCode::kSplat;
}

namespace {

using Stride = std::optional<int64_t>;

class Finder {
 public:
  explicit Finder(const State& state) : state_(state) {}

  Stride find(ValueId value, const Coords& coords) const {
    if (!has_lanes(coords)) return 0;
    if (state_.at(value).kind == Held::Kind::kScalar) return 0;
    const std::vector<int64_t>& shape = state_.type(value).shape;
    Coords c = coords;
    for (size_t d = 0; d < c.size(); ++d) {
      if (shape[d] == 1) c[d] = {"0"};
    }
    if (!has_lanes(c)) return 0;
    const Op* op = state_.uses.definer(value);
    if (state_.is_buffer(value) || op == nullptr) return std::nullopt;
    const std::pair key(value, key_of(c));
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
    return known_[key] = compute(*op, c);
  }

 private:
  Stride compute(const Op& op, const Coords& c) const {
    if (is_shape_op(op.code)) return find(op.operands[0], operand_coords(state_.kernel, op, c));
    if (op.code == OpCode::kIota) return 1;
    if (op.code == OpCode::kFlip) return flip(op, c);
    if (op.code == OpCode::kLoad || info_of(op.code).has(kElementwise)) return elementwise(op, c);
    return std::nullopt;
  }

  Stride flip(const Op& op, const Coords& c) const {
    const bool other_axis = !c[static_cast<size_t>(op.attributes.integer("axis"))].lane;
    return other_axis ? find(op.operands[0], c) : std::nullopt;
  }

  Stride elementwise(const Op& op, const Coords& c) const {
    std::vector<Stride> in;
    bool uniform = true;
    for (const ValueId operand : op.operands) {
      in.push_back(find(operand, c));
      uniform = uniform && in.back() == 0;
    }
    if (uniform) return 0;
    const Type& type = state_.type(op.results[0]);
    const bool index = type.pointer || is_int(type.element);
    if (!index || std::any_of(in.begin(), in.end(), [](const Stride& s) { return !s; })) return std::nullopt;
    switch (op.code) {
      case OpCode::kAdd:
        return *in[0] + *in[1];
      case OpCode::kSub:
        return is_signed_int(type.element) ? Stride(*in[0] - *in[1]) : std::nullopt;
      case OpCode::kMul:
        return multiply(op, *in[0], *in[1]);
      case OpCode::kAddPtr:
        return *in[0] + *in[1] * size_of(type.element);
      case OpCode::kHint:
        return in[0];
      case OpCode::kCast: {
        const Element from = state_.type(op.operands[0]).element;
        return is_int(from) && bits_of(from) <= bits_of(type.element) ? in[0] : std::nullopt;
      }
      default:
        return std::nullopt;
    }
  }

  Stride multiply(const Op& op, int64_t a, int64_t b) const {
    const size_t factor = a == 0 ? 0 : 1;
    if (a != 0 && b != 0) return std::nullopt;
    const std::optional<int64_t> by = state_.constant(op.operands[factor]);
    if (!by) return std::nullopt;
    return *by * (a == 0 ? b : a);
  }

  const State& state_;
  mutable std::map<std::pair<ValueId, std::string>, Stride> known_;  // each once, however many ways lead to it
};

bool add_conjuncts(const State& state, ValueId mask, const Coords& coords, PrefixMask& to,
                   std::set<std::pair<ValueId, std::string>>& seen) {
  if (!seen.emplace(mask, key_of(coords)).second) return true;  // it holds if it holds once
  if (lane_stride(state, mask, coords) == 0) {
    to.uniform.push_back({mask, without_lanes(coords)});
    return true;
  }
  const Op* op = state.uses.definer(mask);
  if (!state.is_pending(mask) || op == nullptr) return false;
  if (is_shape_op(op->code)) {
    const std::vector<int64_t>& from = state.type(op->operands[0]).shape;
    Coords inner = operand_coords(state.kernel, *op, coords);
    for (size_t d = 0; d < inner.size(); ++d) {
      if (from[d] == 1) inner[d] = {"0"};
    }
    return add_conjuncts(state, op->operands[0], inner, to, seen);
  }
  if (op->code == OpCode::kAnd) {
    return add_conjuncts(state, op->operands[0], coords, to, seen) &&
           add_conjuncts(state, op->operands[1], coords, to, seen);
  }
  const auto order = order_of(*op);
  if (!order || !is_signed_int(state.type(op->operands[0]).element)) return false;
  const auto [index, limit, strict] = *order;
  if (lane_stride(state, index, coords) != 1 || lane_stride(state, limit, coords) != 0) return false;
  to.bounds.push_back({index, limit, !strict, coords});
  return true;
}

}  // namespace

std::optional<int64_t> lane_stride(const State& state, ValueId value, const Coords& coords) {
  return Finder(state).find(value, coords);
}

std::optional<PrefixMask> prefix_mask(const State& state, ValueId mask, const Coords& coords) {
  PrefixMask found;
  std::set<std::pair<ValueId, std::string>> seen;
  if (!add_conjuncts(state, mask, coords, found, seen)) return std::nullopt;
  return found;
}

std::optional<std::string> step_of(const State& state, ValueId pointers) {
  const Op* moved = state.uses.definer(pointers);
  if (moved == nullptr || moved->code != OpCode::kAddPtr) return std::nullopt;
  const Op* splat = state.uses.definer(moved->operands[1]);
  if (splat == nullptr || splat->code != OpCode::kSplat) return std::nullopt;
  const ValueId offset = splat->operands[0];
  const Region* body = state.uses.region(offset);
  if (body == nullptr || state.uses.definer(offset) != nullptr) return std::nullopt;
  const auto argument = std::find(body->arguments.begin(), body->arguments.end(), offset);
  const std::vector<ValueId>& next = body->ops.back().operands;
  if (argument == body->arguments.end() || next.size() + 1 != body->arguments.size()) return std::nullopt;
  const Op* sum = state.uses.definer(next[static_cast<size_t>(argument - body->arguments.begin()) - 1]);
  if (sum == nullptr || sum->code != OpCode::kAdd || sum->operands[0] != offset) return std::nullopt;
  ValueId step = sum->operands[1];
  for (const Op* op = state.uses.definer(step); op != nullptr && op->code == OpCode::kCast;) {
    step = op->operands[0];
    op = state.uses.definer(step);
  }
  if (const auto constant = state.constant(step)) return fmt::format("{}", *constant);
  const Held& held = state.at(step);
  if (held.kind != Held::Kind::kScalar) return std::nullopt;
  return fmt::format("int64_t({}.v)", held.name);
}

bool is_inner(const Coords& coords) {
  return std::any_of(coords.begin(), coords.end(), [](const Index& i) { return i.lane || i.inner; });
}

}  // namespace heddle::lang::cpu
