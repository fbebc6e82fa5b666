#include "lang/cpu/columns.h"

#include <fmt/format.h>

#include <functional>
#include <set>

namespace heddle::lang::cpu {

bool reads_columns(State& state, ValueId value) {
  const std::vector<int64_t>& shape = state.type(value).shape;
  if (shape.size() != 2 || shape[0] % 16 != 0 || shape[1] % 16 != 0) return false;
  const Lanes lanes(state);
  bool columns = false, rows = false;
  std::set<ValueId> seen;
  const std::function<void(ValueId)> visit = [&](ValueId each) {
    if (!seen.insert(each).second) return;
    const Op* op = state.uses.definer(each);
    if (!state.is_pending(each) || op == nullptr || state.type(each).shape != shape) return;
    if (op->code == OpCode::kLoad) {
      const bool adjacent = lanes.is_adjacent(op->operands[0], {{"c", true, true}, {"i0"}});
      (adjacent ? columns : rows) = true;
    } else if (info_of(op->code).has(kElementwise)) {
      for (const ValueId operand : op->operands) visit(operand);
    } else {
      rows = true;
    }
  };
  visit(value);
  return columns && !rows;
}

void write_columns(State& state, Loops& loops, Writer& out, ValueId value, const std::string& buffer) {
  const std::vector<int64_t>& shape = state.type(value).shape;
  const std::string columns = state.new_buffer(value);
  loops.rows(
      out, {shape[1], shape[0]},
      [&](Lanes& lanes, const Coords& coords) {
        const std::string name = lanes.wide(value, {coords[1], coords[0]});
        const std::string offset = Lanes::place({shape[1], shape[0]}, coords).offset;
        lanes.inner.line("hold({} + {}, {}, n);", columns, offset, name);
      },
      [&](Writer& row, const Lanes& lanes, const Coords&) { add_loop(row, lanes, shape[0]); });
  out.raw(
      fmt::format("transpose_block({}, {}, {}, {}, {}, {});", buffer, shape[1], columns, shape[0], shape[0], shape[1]));
}

}  // namespace heddle::lang::cpu
