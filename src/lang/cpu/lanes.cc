#include "lang/cpu/lanes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"
#include "lang/analysis/waits.h"
#include "lang/cpu/expression.h"
#include "lang/cpu/types.h"

namespace heddle::lang::cpu {
namespace {

// The lanes of what memory holds.
std::string from_memory(const Type& type, const std::string& text) {
  return is_mask(type) ? fmt::format("to_bool({})", text) : text;
}

// An element under a mask, if there is one.
std::string element_load(bool now, const std::string& memory, const std::string& address, const std::string& mask) {
  if (!mask.empty()) return fmt::format("{}<{}>({}, {})", now ? "load_now" : "load_at", memory, address, mask);
  return now ? fmt::format("load_now<{}>({})", memory, address)
             : fmt::format("load<1>(pointer<{}>({}))", memory, address);
}

// Asks for what the next iteration reads: its rows lie where no prefetcher of the machine looks.
void add_prefetch(Writer& out, const State& state, ValueId pointers, const std::string& memory,
                  const std::string& address) {
  const auto step = step_of(state, pointers);
  if (step) out.line("__builtin_prefetch(pointer<{}>({}) + {}, 0, 2);", memory, address, *step);
}

}  // namespace

Coords without_units(const std::vector<int64_t>& shape, Coords coords) {
  for (size_t d = 0; d < coords.size(); ++d) {
    if (shape[d] == 1) coords[d] = {"0"};
  }
  return coords;
}

std::string window_text(const State& state, const Op& op, const Coords& coords, const std::vector<std::string>& offsets,
                        const std::vector<int64_t>& checked) {
  const Op* view = state.uses.definer(op.operands[0]);
  HEDDLE_CHECK(view != nullptr && view->code == OpCode::kMakeView, "a view that `make_view` did not make");
  const Type& type = state.type(op.operands[0]);
  const size_t rank = type.shape.size();
  const auto scalar = [&](size_t operand) { return state.at(view->operands[operand]).name; };
  std::string base = fmt::format("writable<{}>({})", memory_type(type.element), scalar(0));
  std::string inside = "true", first = "0", size = "INT64_MAX", stride = "1";
  bool has_lane = false;
  for (size_t d = 0; d < rank; ++d) {
    const std::string index = fmt::format("int64_t({}) + {}", offsets[d], coords[d].text);
    const bool is_checked = std::find(checked.begin(), checked.end(), static_cast<int64_t>(d)) != checked.end();
    if (coords[d].lane || (d + 1 == rank && !has_lane)) {
      has_lane = true;
      first = index;
      stride = fmt::format("int64_t({}.v)", scalar(1 + rank + d));
      if (is_checked) size = fmt::format("int64_t({}.v)", scalar(1 + d));
      continue;
    }
    base += fmt::format(" + ({}) * int64_t({}.v)", index, scalar(1 + rank + d));
    if (is_checked) inside += fmt::format(" && {0} >= 0 && {0} < int64_t({1}.v)", "(" + index + ")", scalar(1 + d));
  }
  return fmt::format("{}, {}, {}, {}, {}", base, stride, first, size, inside);
}

// What is needed once is a part of its user.
std::string Lanes::widened(const Value& value) {
  if (value.wide) return value.name;
  const auto [found, is_new] = widened_.emplace(value.name, "");
  std::string text = fmt::format("widen<W>({})", value.name);
  if (is_new) return text;
  if (found->second.empty()) {
    found->second = value.name + "lanes";
    inner.line("const auto {} = {};", found->second, text);
  }
  return found->second;
}

std::vector<ValueId> Lanes::computed_at(const Coords& coords) const {
  std::vector<ValueId> values;
  for (const auto& [key, value] : known_) {
    if (value.wide == has_lanes(coords) && key.second == key_of(coords)) values.push_back(key.first);
  }
  return values;
}

std::string Lanes::declare(ValueId value, const std::string& text, bool to_inner, const std::string& comment) {
  const std::string name = state_.fresh(value);
  (to_inner ? inner : row).line("const auto {} = {};{}{}", name, text, comment.empty() ? "" : "  ", comment);
  return name;
}

Lanes::Value Lanes::at(ValueId value, const Coords& coords) {
  const Held& held = state_.at(value);
  if (held.kind == Held::Kind::kScalar) return {held.name, false};
  const Coords c = without_units(state_.type(value).shape, coords);
  const std::pair key(value, key_of(c));
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  const Op* op = state_.uses.definer(value);
  HEDDLE_CHECK(state_.is_buffer(value) || op != nullptr, "{} is nowhere", state_.kernel.value_name(value));
  const Value result = state_.is_buffer(value) ? this->held(value, c) : compute(value, *op, c);
  known_.emplace(key, result);
  return result;
}

Lanes::Place Lanes::place(const std::vector<int64_t>& shape, const Coords& coords) {
  Place place;
  int64_t stride = 1;
  std::vector<std::string> terms;
  for (size_t d = shape.size(); d-- > 0;) {
    if (coords[d].lane) place.stride = stride;
    if (coords[d].text != "0") {
      terms.push_back(stride == 1 ? coords[d].text : fmt::format("{} * {}", coords[d].text, stride));
    }
    stride *= shape[d];
  }
  std::reverse(terms.begin(), terms.end());
  place.offset = terms.empty() ? "0" : fmt::format("{}", fmt::join(terms, " + "));
  return place;
}

Lanes::Value Lanes::read(ValueId value, const std::string& buffer, const Place& place, const Coords& coords) {
  const bool mask = is_mask(state_.type(value));
  const std::string from = place.offset == "0" ? buffer : fmt::format("{} + {}", buffer, place.offset);
  if (place.stride == 0) {
    const std::string text = fmt::format("{}<1>({}, index_constant<1>{{}})", mask ? "held_mask" : "held", from);
    return {declare(value, text, is_inner(coords)), false};
  }
  std::string text = place.stride == 1 ? fmt::format("fetch<W>({}, n)", from)
                                       : fmt::format("fetch_strided<W>({}, {}, n)", from, place.stride);
  if (mask) text = fmt::format("mask<4, W>{{{}}}", text);
  return {declare(value, text, true), true};
}

Lanes::Value Lanes::held(ValueId value, const Coords& coords) {
  return read(value, state_.at(value).name, place(state_.type(value).shape, coords), coords);
}

Lanes::Value Lanes::compute(ValueId value, const Op& op, const Coords& coords) {
  if (info_of(op.code).has(kElementwise)) return elementwise(value, op, coords);
  switch (op.code) {
    case OpCode::kIota:
      return iota(value, op, coords);
    case OpCode::kLoad:
      return load(value, op, coords);
    case OpCode::kLoadView:
    case OpCode::kGatherView:
      return load_view(value, op, coords);
    case OpCode::kGather:
      return gather(value, op, coords);
    case OpCode::kSplit:
      return split(value, op, coords);
    case OpCode::kFlip:
      return flip(value, op, coords);
    case OpCode::kReshape:
      return reshape(op, coords);
    default:
      return at(op.operands[0], operand_coords(state_.kernel, op, coords));
  }
}

Lanes::Value Lanes::elementwise(ValueId value, const Op& op, const Coords& coords) {
  if (ir::is_comparison(op.code)) {
    if (const auto count = bounds.compared(*this, value, coords)) {
      return {declare(value, fmt::format("active<W>({})", *count), true, place_comment(state_.kernel, op)), true};
    }
  }
  std::vector<Value> operands;
  bool wide = false;
  for (const ValueId operand : op.operands) {
    operands.push_back(at(operand, coords));
    wide = wide || operands.back().wide;
  }
  std::vector<std::string> names;
  for (const Value& operand : operands) names.push_back(wide ? widened(operand) : operand.name);
  const bool to_inner = wide || (is_inner(coords) && !op.operands.empty());
  return {declare(value, expression(state_.kernel, op, names), to_inner, place_comment(state_.kernel, op)), wide};
}

Lanes::Value Lanes::iota(ValueId value, const Op& op, const Coords& coords) {
  const std::string type = lane_type(state_.type(value));
  const int64_t start = op.attributes.integer("start");
  const std::string first = start == 0 ? coords[0].text : fmt::format("{} + {}", coords[0].text, start);
  if (coords[0].lane) return {declare(value, fmt::format("iota<{0}, W>({0}({1}))", type, first), true), true};
  return {declare(value, fmt::format("vec<{0}, 1>{{{0}({1})}}", type, first), coords[0].inner), false};
}

// ---- Memory

bool Lanes::is_adjacent(ValueId pointers, const Coords& coords) const {
  const int64_t size = size_of(state_.type(pointers).element);
  return lane_stride(state_, pointers, coords) == size;
}

std::optional<std::string> Lanes::lane_count(ValueId mask, const Coords& coords) {
  const auto prefix = prefix_mask(state_, mask, without_units(state_.type(mask).shape, coords));
  if (!prefix) return std::nullopt;
  if (const auto name = bounds.name_of(*this, *prefix)) return fmt::format("within<W>(form, n, {} - c)", *name);
  std::string count = "int64_t(n)";
  for (const PrefixMask::Bound& bound : prefix->bounds) {
    const std::string limit = at(bound.limit, without_lanes(bound.coords)).name;
    const std::string index = at(bound.index, first_lane(bound.coords)).name;
    count =
        fmt::format("smaller({}, int64_t({}.v) - int64_t({}.v){})", count, limit, index, bound.inclusive ? " + 1" : "");
  }
  for (const PrefixMask::Uniform& uniform : prefix->uniform) {
    count = fmt::format("{}[0] ? {} : 0", at(uniform.mask, uniform.coords).name, count);
  }
  return count;
}

std::string Lanes::active_mask(ValueId mask, bool masked, const Coords& coords) {
  return masked ? fmt::format("{} & active<W>(n)", wide(mask, coords)) : "active<W>(n)";
}

std::string Lanes::with_other(const Op& op, const std::string& loaded, const std::string& present,
                              const Coords& coords) {
  if (op.operands.size() < 3 || state_.is_zero(op.operands[2])) return loaded;  // what is missing is 0
  return fmt::format("select({}, {}, {})", present, loaded, wide(op.operands[2], coords));
}

Lanes::Value Lanes::load_scalar(ValueId value, const Op& op, const Coords& coords) {
  const Type& type = state_.type(value);
  const std::string memory = memory_type(type.element), comment = place_comment(state_.kernel, op);
  const std::string address = at(op.operands[0], coords).name;
  const std::string mask = op.operands.size() > 1 ? at(op.operands[1], coords).name : "";
  std::string text = from_memory(type, element_load(is_volatile(op), memory, address, mask));
  if (op.operands.size() > 2) {
    text = fmt::format("select({}, {}, {})", at(op.operands[1], coords).name, text, at(op.operands[2], coords).name);
  }
  return {declare(value, text, is_inner(coords), comment), false};
}

Lanes::Value Lanes::load(ValueId value, const Op& op, const Coords& coords) {
  if (!has_lanes(coords)) return load_scalar(value, op, coords);
  const Type& type = state_.type(value);
  const std::string memory = memory_type(type.element), comment = place_comment(state_.kernel, op);
  const bool masked = op.operands.size() > 1;
  const auto declared = [&](const std::string& text) { return Value{declare(value, text, true, comment), true}; };
  if (is_adjacent(op.operands[0], coords)) {
    const auto count = masked ? lane_count(op.operands[1], coords) : std::optional<std::string>("");
    if (count) {
      const std::string address = first_address(op.operands[0], coords);
      add_prefetch(inner, state_, op.operands[0], memory, address);
      if (!masked) return declared(from_memory(type, fmt::format("fetch<W>(pointer<{}>({}), n)", memory, address)));
      const std::string lanes = state_.fresh(value);
      inner.line("const auto {} = {};", lanes, *count);
      const std::string text =
          from_memory(type, fmt::format("load_first<W>(pointer<{}>({}), {})", memory, address, lanes));
      return declared(with_other(op, text, fmt::format("active<W>({})", lanes), coords));
    }
  }
  const std::string present = masked ? wide(op.operands[1], coords) : "";
  const std::string active = masked ? fmt::format("{} & active<W>(n)", present) : "active<W>(n)";
  const std::string text =
      from_memory(type, fmt::format("load_at<{}>({}, {})", memory, wide(op.operands[0], coords), active));
  return declared(with_other(op, text, present, coords));
}

Lanes::Value Lanes::load_view(ValueId value, const Op& op, const Coords& coords) {
  const Type& type = state_.type(value);
  const Op* view = state_.uses.definer(op.operands[0]);
  const bool rows = op.code == OpCode::kGatherView;
  std::vector<std::string> offsets;
  std::vector<int64_t> checked = op.attributes.list("check");
  Coords box = coords;
  if (rows) {
    checked = {0, 1};
    offsets = {at(op.operands[1], {coords[0]}).name + ".v", state_.at(op.operands[2]).name + ".v"};
    box[0] = {"0"};
  } else {
    for (size_t d = 0; d < coords.size(); ++d) offsets.push_back(state_.at(op.operands[1 + d]).name + ".v");
  }
  const bool nan = view->attributes.word("padding") == "nan" && is_float(type.element);
  const std::string padding = nan ? R"(__builtin_nan(""))" : "0";
  const bool lanes = has_lanes(coords);
  const std::string text =
      fmt::format("load_window<{}>({}, {}, {})", lanes ? "W" : "1", window_text(state_, op, box, offsets, checked),
                  lanes ? "n" : "index_constant<1>{}", padding);
  return {declare(value, from_memory(type, text), is_inner(coords), place_comment(state_.kernel, op)), lanes};
}

// ---- Elements of a buffer in another order

Lanes::Value Lanes::gather(ValueId value, const Op& op, const Coords& coords) {
  const ValueId from = op.operands[0];
  const std::vector<int64_t>& shape = state_.type(from).shape;
  const auto axis = static_cast<size_t>(op.attributes.integer("axis"));
  int64_t axis_stride = 1;
  for (size_t d = axis + 1; d < shape.size(); ++d) axis_stride *= shape[d];
  Coords others = coords;
  others[axis] = {"0"};
  const Place other = place(shape, without_units(shape, others));
  const Value index = at(op.operands[1], coords);
  const bool lanes = has_lanes(coords);
  std::string text = fmt::format("picked<{}>({} + {}, {}, {}, {}, {}, {})", lanes ? "W" : "1", state_.at(from).name,
                                 other.offset, other.stride, lanes ? widened(index) : index.name, axis_stride,
                                 shape[axis], lanes ? "n" : "index_constant<1>{}");
  if (is_mask(state_.type(value))) text = fmt::format("mask<4, {}>{{{}}}", lanes ? "W" : "1", text);
  return {declare(value, text, is_inner(coords), place_comment(state_.kernel, op)), lanes};
}

Lanes::Value Lanes::split(ValueId value, const Op& op, const Coords& coords) {
  const int part = value == op.results[0] ? 0 : 1;
  Place at = place(state_.type(value).shape, coords);
  at.offset = fmt::format("({}) * 2 + {}", at.offset, part);
  at.stride *= 2;
  return read(value, state_.at(op.operands[0]).name, at, coords);
}

Lanes::Value Lanes::flip(ValueId value, const Op& op, const Coords& coords) {
  const std::vector<int64_t>& shape = state_.type(value).shape;
  const auto axis = static_cast<size_t>(op.attributes.integer("axis"));
  Coords flipped = coords;
  flipped[axis].text = fmt::format("({} - ({}))", shape[axis] - 1, coords[axis].text);
  if (!coords[axis].lane) return at(op.operands[0], flipped);
  Place from = place(shape, flipped);
  from.stride = -from.stride;
  return read(value, state_.at(op.operands[0]).name, from, coords);
}

// Of equal last extents: the rows are counted otherwise.
Lanes::Value Lanes::reshape(const Op& op, const Coords& coords) {
  std::vector<int64_t> to = state_.type(op.results[0]).shape, from = state_.type(op.operands[0]).shape;
  Coords rows(coords.begin(), coords.end() - 1);
  to.pop_back();
  from.pop_back();
  const std::string row = place(to, rows).offset;
  const bool inner = is_inner(rows);
  Coords result(from.size());
  int64_t stride = 1;
  for (size_t d = from.size(); d-- > 0;) {
    result[d] = {from[d] == 1 ? "0"
                 : d == 0     ? fmt::format("(({}) / {})", row, stride)
                              : fmt::format("(({}) / {} % {})", row, stride, from[d])};
    result[d].inner = inner;
    stride *= from[d];
  }
  result.push_back(coords.back());
  return at(op.operands[0], result);
}

}  // namespace heddle::lang::cpu
