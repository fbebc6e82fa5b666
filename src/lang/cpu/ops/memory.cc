#include <fmt/format.h>

#include "lang/analysis/waits.h"
#include "lang/cpu/sinks.h"
#include "lang/cpu/types.h"

namespace heddle::lang::cpu {
namespace {

std::string to_memory(const Type& type, const std::string& name) {
  return is_mask(type) ? fmt::format("from_mask<uint8_t>({})", name) : name;
}

void store_scalar(SinkContext& c, const Op& op) {
  const auto name = [&](size_t i) { return c.state.at(op.operands[i]).name; };
  const Type& type = c.state.type(op.operands[1]);
  const std::string condition = op.operands.size() > 2 ? fmt::format("if ({}[0]) ", name(2)) : "";
  c.out->line("{}store(writable<{}>({}), {});", condition, memory_type(type.element), name(0),
              to_memory(type, name(1)));
}

void store(SinkContext& c, const Op& op) {
  c.loops.flush_loads(*c.out, op.operands);
  add_place(c, op);
  const Type& type = c.state.type(op.operands[1]);
  if (type.is_scalar()) return store_scalar(c, op);
  for (const ValueId operand : op.operands) c.loops.prepare(*c.out, operand);
  const std::string memory = memory_type(type.element);
  c.loops.written();
  c.loops.loop(*c.out, type.shape, [&](Lanes& lanes, const Coords& coords) {
    const std::string value = to_memory(type, lanes.wide(op.operands[1], coords));
    const bool masked = op.operands.size() > 2;
    if (lanes.is_adjacent(op.operands[0], coords)) {
      const auto count = masked ? lanes.lane_count(op.operands[2], coords) : std::optional<std::string>("n");
      if (count) {
        const std::string address = lanes.first_address(op.operands[0], coords);
        lanes.inner.raw(masked ? fmt::format("store_first(writable<{}>({}), {}, {});", memory, address, value, *count)
                               : fmt::format("put(writable<{}>({}), {}, n);", memory, address, value));
        return;
      }
    }
    const std::string address = lanes.wide(op.operands[0], coords);
    lanes.inner.line("store_at<{}>({}, {}, {});", memory, address, value,
                     lanes.active_mask(masked ? op.operands[2] : 0, masked, coords));
  });
}

// The update of the lanes: "atomic_update<float, atomic_kind::add>(addresses, values, mask)".
std::string update(const Op& op, Element element, const std::vector<std::string>& operands, const std::string& mask) {
  const std::string memory = memory_type(element);
  if (op.code == OpCode::kAtomicCas) {
    return fmt::format("atomic_compare<{}>({}, {}, {}, {})", memory, operands[0], operands[1], operands[2], mask);
  }
  std::string kind(op.attributes.word("kind"));
  if (kind == "xchg") kind = "exchange";
  if (kind == "and" || kind == "or" || kind == "xor") kind = "bit_" + kind;
  return fmt::format("atomic_update<{}, atomic_kind::{}>({}, {}, {})", memory, kind, operands[0], operands[1], mask);
}

// Tells the loop around what was read from memory that others write to.
void tell_watch(SinkContext& c, ValueId heard) {
  if (c.state.watch.empty()) return;
  const std::string& name = c.state.at(heard).name;
  c.out->raw(c.state.type(heard).is_tile()
                 ? fmt::format("{}.saw({}, {});", c.state.watch, name, c.state.type(heard).elements())
                 : fmt::format("{}.saw({});", c.state.watch, name));
}

// The whole tile is read here, into a buffer.
void volatile_load(SinkContext& c, const Op& op) {
  c.loops.flush_loads(*c.out);
  add_place(c, op);
  c.out->raw("order_memory();");
  c.loops.buffer(*c.out, op.results[0]);
  c.out->raw("order_memory();");
  tell_watch(c, op.results[0]);
}

void atomic(SinkContext& c, const Op& op) {
  c.loops.flush_loads(*c.out);
  add_place(c, op);
  const ValueId result = op.results[0];
  const Type& type = c.state.type(result);
  const bool masked = op.code == OpCode::kAtomicRmw && op.operands.size() > 2;
  const size_t count = op.operands.size() - (masked ? 1 : 0);
  if (type.is_scalar()) {
    std::vector<std::string> names;
    for (const ValueId operand : op.operands) names.push_back(c.state.at(operand).name);
    const std::string old = c.state.fresh(result);
    const std::string mask = masked ? names.back() : "mask<4, 1>{{-1}}";
    c.out->line("const auto {} = {};", old, update(op, type.element, names, mask));
    c.state.set_scalar(result, old);
    tell_watch(c, result);
    return;
  }
  for (const ValueId operand : op.operands) c.loops.prepare(*c.out, operand);
  const std::string buffer = c.state.uses.users(result).empty() ? "" : c.state.new_buffer(result);
  c.loops.written();
  c.loops.loop(*c.out, type.shape, [&](Lanes& lanes, const Coords& coords) {
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) names.push_back(lanes.wide(op.operands[i], coords));
    const std::string text =
        update(op, type.element, names, lanes.active_mask(masked ? op.operands.back() : 0, masked, coords));
    lanes.inner.raw(buffer.empty()
                        ? text + ";"
                        : fmt::format("hold({} + {}, {}, n);", buffer, Lanes::place(type.shape, coords).offset, text));
  });
  if (!buffer.empty()) {
    c.state.set_buffer(result, buffer);
    tell_watch(c, result);
  } else if (!c.state.watch.empty()) {
    c.out->line("{}.changed();", c.state.watch);
  }
}

void write_view(SinkContext& c, const Op& op) {
  const ValueId value = op.operands.back();
  const bool rows = op.code == OpCode::kScatterView;
  c.loops.flush_loads(*c.out, {value});
  add_place(c, op);
  c.loops.prepare(*c.out, value);
  if (rows) c.loops.prepare(*c.out, op.operands[1]);
  const Type& type = c.state.type(value);
  std::vector<int64_t> checked = op.attributes.list("check");
  if (op.code != OpCode::kStoreView) {
    checked.clear();
    for (int64_t d = 0; d < type.rank(); ++d) checked.push_back(d);
  }
  c.loops.written();
  c.loops.loop(*c.out, type.shape, [&](Lanes& lanes, const Coords& coords) {
    std::vector<std::string> offsets;
    Coords box = coords;
    if (rows) {
      offsets = {lanes.at(op.operands[1], {coords[0]}).name + ".v", c.state.at(op.operands[2]).name + ".v"};
      box[0] = {"0"};
    } else {
      for (size_t d = 0; d < coords.size(); ++d) offsets.push_back(c.state.at(op.operands[1 + d]).name + ".v");
    }
    const std::string text = to_memory(type, lanes.wide(value, coords));
    const std::string window = window_text(c.state, op, box, offsets, checked);
    if (op.code != OpCode::kAtomicView) {
      lanes.inner.line("store_window({}, {}, n);", window, text);
      return;
    }
    std::string kind(op.attributes.word("kind"));
    if (kind == "and" || kind == "or" || kind == "xor") kind = "bit_" + kind;
    lanes.inner.line("update_window<atomic_kind::{}>({}, {}, n);", kind, window, text);
  });
}

}  // namespace

void add_place(SinkContext& c, const Op& op) {
  const std::string place = place_comment(c.state.kernel, op);
  if (!place.empty()) c.out->raw(place);
}

bool write_memory_op(SinkContext& c, const Op& op) {
  switch (op.code) {
    case OpCode::kLoad:
    case OpCode::kLoadView:
      if (!is_volatile(op) || !c.state.type(op.results[0]).is_tile()) return false;
      volatile_load(c, op);
      return true;
    case OpCode::kStore:
      store(c, op);
      return true;
    case OpCode::kAtomicRmw:
    case OpCode::kAtomicCas:
      atomic(c, op);
      return true;
    case OpCode::kStoreView:
    case OpCode::kAtomicView:
    case OpCode::kScatterView:
      write_view(c, op);
      return true;
    case OpCode::kMakeView:
      return true;  // its operands are read where it is used
    default:
      return false;
  }
}

}  // namespace heddle::lang::cpu
