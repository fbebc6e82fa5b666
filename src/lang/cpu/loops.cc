#include "lang/cpu/loops.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "lang/cpu/columns.h"
#include "lang/cpu/types.h"

namespace heddle::lang::cpu {

namespace {

constexpr int64_t kMostLanes = 16;  // of f32 in a native vector

}  // namespace

std::string vector_width(int64_t extent) {
  if (extent >= kMostLanes) return "kLanes";
  int64_t lanes = 1;
  while (lanes * 2 <= extent) lanes *= 2;
  return fmt::format("{}", lanes);
}

int results_at_once(int64_t extent) {
  return extent >= 4 * kMostLanes ? 4 : extent >= 2 * kMostLanes ? 2 : 1;
}

void add_loop(Writer& row, const Lanes& lanes, int64_t extent) {
  const std::string width = vector_width(extent);
  const bool bounded = !lanes.bounds.empty();
  row.block(
      fmt::format("for_{}lanes<{}, {}>({}[&]<int W>(int64_t c, auto n{}) __attribute__((always_inline))",
                  bounded ? "bounded_" : "all_", width, extent, lanes.bounds.argument(), bounded ? ", auto form" : ""),
      lanes.inner, "});");
}

void Loops::enter(const Op& op, const Region& region) {
  sink_ = &op;
  region_ = &region;
  sink_is_written_ = false;
}

// ---- What is kept

bool Loops::needed_later(ValueId value, const std::set<ValueId>& kept, std::set<ValueId>& unneeded) const {
  if (!unneeded.insert(value).second) return false;
  const int now = state_.uses.order(*sink_);
  const auto needs = [&](const Op* user) {
    const int when = state_.uses.order(*user);
    if (when > now || (when == now && !sink_is_written_)) return true;
    return is_lazy(state_.kernel, *user) &&
           std::any_of(user->results.begin(), user->results.end(), [&](ValueId result) {
             return state_.is_pending(result) && !kept.contains(result) && needed_later(result, kept, unneeded);
           });
  };
  const std::vector<const Op*>& users = state_.uses.users(value);
  const bool needed = std::any_of(users.begin(), users.end(), needs);
  if (needed) unneeded.erase(value);
  return needed;
}

std::vector<ValueId> Loops::worth_keeping(const Lanes& lanes, const std::vector<int64_t>& shape, const Coords& coords,
                                          const std::vector<ValueId>& kept) const {
  std::vector<ValueId> candidates;
  for (const ValueId value : lanes.computed_at(without_units(shape, coords))) {
    const bool here = state_.uses.region(value) == region_ && state_.type(value).shape == shape;
    if (here && state_.is_heavy(value)) candidates.push_back(value);
  }
  std::sort(candidates.begin(), candidates.end(), [&](ValueId a, ValueId b) {
    return state_.uses.order(*state_.uses.definer(a)) > state_.uses.order(*state_.uses.definer(b));
  });
  std::set<ValueId> all(kept.begin(), kept.end());
  std::vector<ValueId> chosen;
  std::set<ValueId> unneeded;
  for (const ValueId value : candidates) {
    if (all.contains(value) || !needed_later(value, all, unneeded)) continue;
    all.insert(value);
    chosen.push_back(value);
  }
  return chosen;
}

void Loops::keep(Lanes& lanes, const std::vector<int64_t>& shape, const Coords& coords,
                 const std::vector<ValueId>& values) {
  for (const ValueId value : values) {
    const std::string name = lanes.wide(value, coords), buffer = state_.new_buffer(value);
    lanes.inner.line("hold({} + {}, {}, n);", buffer, Lanes::place(shape, coords).offset, name);
    state_.set_buffer(value, buffer);
  }
}

// ---- Loops

void Loops::rows(Writer& out, const std::vector<int64_t>& shape, const Body& body, const Finish& finish) {
  Coords coords;
  for (size_t d = 0; d + 1 < shape.size(); ++d) coords.push_back({fmt::format("i{}", d)});
  coords.push_back({"c", true, true});
  coords = without_units(shape, coords);
  if (shape.back() == 1) coords.back() = {"c", true, true};
  Lanes lanes(state_);
  body(lanes, coords);
  Writer row;
  row.append(lanes.row);
  finish(row, lanes, coords);
  for (size_t d = shape.size() - 1; d-- > 0;) {
    if (shape[d] == 1) continue;
    Writer outer;
    outer.block(fmt::format("for (int64_t i{0} = 0; i{0} < {1}; ++i{0})", d, shape[d]), row);
    row = std::move(outer);
  }
  if (shape.size() == 1 || std::all_of(shape.begin(), shape.end() - 1, [](int64_t e) { return e == 1; })) {
    Writer scope;
    scope.block("", row);
    row = std::move(scope);
  }
  out.append(row);
}

void Loops::loop(Writer& out, const std::vector<int64_t>& shape, const Body& body, const std::vector<ValueId>& kept) {
  rows(
      out, shape,
      [&](Lanes& lanes, const Coords& coords) {
        body(lanes, coords);
        keep(lanes, shape, coords, worth_keeping(lanes, shape, coords, kept));
      },
      [&](Writer& row, const Lanes& lanes, const Coords&) { add_loop(row, lanes, shape.back()); });
}

void Loops::reduce_rows(Writer& out, const std::vector<int64_t>& shape,
                        const std::function<std::string(Lanes& lanes, const Coords& coords)>& body,
                        const Finish& finish) {
  rows(
      out, shape,
      [&](Lanes& lanes, const Coords& coords) {
        const std::string end = body(lanes, coords);
        keep(lanes, shape, coords, worth_keeping(lanes, shape, coords, {}));
        lanes.inner.raw(end);
      },
      finish);
}

bool Loops::is_last_use(ValueId value) const {
  if (state_.uses.region(value) != region_) return false;
  const int now = state_.uses.order(*sink_);
  std::set<ValueId> seen;
  for (const Op* user : state_.uses.users(value)) {
    if (state_.uses.order(*user) > now) return false;
    if (user == sink_) continue;
    for (const ValueId result : user->results) {
      const bool lazy = is_lazy(state_.kernel, *user) && state_.is_pending(result);
      const bool alias = state_.is_buffer(result) && state_.is_buffer(value) && !state_.at(result).owned;
      if ((lazy || alias) && !is_unused_from(result, now, seen)) return false;
    }
  }
  return true;
}

bool Loops::is_unused_from(ValueId value, int now, std::set<ValueId>& seen) const {
  if (!seen.insert(value).second) return true;
  for (const Op* user : state_.uses.users(value)) {
    if (state_.uses.order(*user) >= now) return false;
    for (const ValueId result : user->results) {
      if (is_lazy(state_.kernel, *user) && !is_unused_from(result, now, seen)) return false;
    }
  }
  return true;
}

void Loops::write_to(Writer& out, ValueId value, const std::string& buffer, int64_t scale, int64_t shift) {
  const Type& type = state_.type(value);
  if (type.is_scalar()) {
    out.line("hold({} + {}, {}, index_constant<1>{{}});", buffer, shift, state_.at(value).name);
    return;
  }
  if (state_.is_buffer(value) && scale == 1) {
    out.line("copy_buffer({} + {}, {}, {});", buffer, shift, state_.at(value).name, type.elements());
    return;
  }
  loop(out, type.shape,
       [&](Lanes& lanes, const Coords& coords) {
         const std::string name = lanes.wide(value, coords);
         const std::string offset = Lanes::place(type.shape, coords).offset;
         if (scale == 1) {
           lanes.inner.line("hold({} + {} + {}, {}, n);", buffer, shift, offset, name);
         } else {
           lanes.inner.raw(
               fmt::format("hold_strided({} + ({}) * {} + {}, {}, {}, n);", buffer, offset, scale, shift, scale, name));
         }
       },
       {value});
}

void Loops::materialise(Writer& out, ValueId value, bool written) {
  prepare(out, value);
  if (!state_.is_pending(value)) return;
  const std::string buffer = state_.new_buffer(value);
  const bool was_written = std::exchange(sink_is_written_, written);
  reads_columns(state_, value) ? write_columns(state_, *this, out, value, buffer) : write_to(out, value, buffer);
  sink_is_written_ = was_written;
  state_.set_buffer(value, buffer);
}

void Loops::write_now(Writer& out) {
  for (const ValueId result : sink_->results) materialise(out, result, true);
}

const std::string& Loops::buffer(Writer& out, ValueId value) {
  if (state_.is_pending(value)) materialise(out, value);
  return state_.at(value).name;
}

// ---- Preparation

namespace {

// Whether the operand of a shape op is read element by element in another order than that of its rows.
bool needs_buffer(const State& state, const Op& op) {
  switch (op.code) {
    case OpCode::kGather:
    case OpCode::kSplit:
    case OpCode::kFlip:
      return true;
    case OpCode::kReshape: {
      const Type &from = state.type(op.operands[0]), &to = state.type(op.results[0]);
      return from.is_scalar() || to.is_scalar() || from.shape.back() != to.shape.back();
    }
    default:
      return false;
  }
}

}  // namespace

void Loops::prepare_operands(Writer& out, const Op& op, std::set<ValueId>& seen) {
  if (op.operands.empty()) return;
  const ValueId from = op.operands[0];
  const bool reads_otherwise = op.code == OpCode::kExpandDims || op.code == OpCode::kBroadcast ||
                               op.code == OpCode::kPermute || op.code == OpCode::kSlice;
  if (needs_buffer(state_, op)) {
    if (state_.type(from).is_tile()) {
      buffer(out, from);
    } else {
      const std::string one = state_.new_buffer(from);
      write_to(out, from, one);
      state_.set_buffer(op.results[0], one, false);
    }
  } else if (reads_otherwise && state_.is_heavy(from)) {
    materialise(out, from);
  }
  for (const ValueId operand : op.operands) prepare(out, operand, seen);
}

void Loops::prepare(Writer& out, ValueId value) {
  std::set<ValueId> seen;
  prepare(out, value, seen);
}

void Loops::prepare(Writer& out, ValueId value, std::set<ValueId>& seen) {
  if (!state_.is_pending(value) || !state_.type(value).is_tile() || !seen.insert(value).second) return;
  const Op* op = state_.uses.definer(value);
  HEDDLE_CHECK(op != nullptr, "{} is nowhere", state_.kernel.value_name(value));
  prepare_operands(out, *op, seen);
  // Another shape of a buffer is the same buffer.
  const bool same_order = op->code == OpCode::kReshape || op->code == OpCode::kExpandDims;
  if (same_order && state_.is_pending(value) && state_.is_buffer(op->operands[0])) {
    state_.set_buffer(value, state_.at(op->operands[0]).name, false);
  }
}

namespace {

// The pending loads that a value is computed from.
void collect_loads(const State& state, ValueId value, const std::set<ValueId>& pending, std::set<ValueId>& loads,
                   std::set<ValueId>& seen) {
  if (!state.is_pending(value)) return;
  const Op* op = state.uses.definer(value);
  if (op == nullptr || !seen.insert(value).second) return;
  if (pending.contains(value)) loads.insert(value);
  for (const ValueId operand : op->operands) collect_loads(state, operand, pending, loads, seen);
}

// Whether two tiles of pointers have the same distances from their bases, as far as that is seen in a few steps.
// `same`: pairs that have unless the answer is no.
bool same_offsets(const State& state, ValueId a, ValueId b, std::set<std::pair<ValueId, ValueId>>& same) {
  constexpr size_t kMostPairs = 64;
  if (a == b || same.contains({a, b})) return true;
  if (same.size() == kMostPairs) return false;
  same.emplace(a, b);
  const Op *x = state.uses.definer(a), *y = state.uses.definer(b);
  if (x == nullptr || y == nullptr || x->code != y->code || state.type(a) != state.type(b)) return false;
  if (x->code == OpCode::kSplat && state.type(a).pointer) return true;
  if (x->operands.size() != y->operands.size() || !x->regions.empty()) return false;
  if (!info_of(x->code).has(kPure)) return false;
  const auto& p = x->attributes.all();
  for (const auto& [name, value] : p) {
    const Attribute* other = y->attributes.find(name);
    if (other == nullptr || other->integer != value.integer || other->number != value.number ||
        other->text != value.text || other->list != value.list) {
      return false;
    }
  }
  for (size_t i = 0; i < x->operands.size(); ++i) {
    if (!same_offsets(state, x->operands[i], y->operands[i], same)) return false;
  }
  return true;
}

}  // namespace

void Loops::flush_loads(Writer& out, const std::vector<ValueId>& but_of) {
  const std::vector<ValueId> loads = std::exchange(loads_, {});
  const std::set<ValueId> all(loads.begin(), loads.end());
  std::set<ValueId> own, seen_below, unneeded;
  for (const ValueId value : but_of) collect_loads(state_, value, all, own, seen_below);
  for (const ValueId load : loads) {
    if (!state_.is_pending(load)) continue;
    if (own.contains(load)) {
      // In the loop that writes, each lane loads before it stores; that is enough where it stores what it loads.
      const Op* op = state_.uses.definer(load);
      const bool here = state_.uses.region(load) == region_ && state_.type(load).shape == state_.type(but_of[0]).shape;
      std::set<std::pair<ValueId, ValueId>> same;
      const bool safe = here && sink_->code == OpCode::kStore && op->code == OpCode::kLoad &&
                        same_offsets(state_, op->operands[0], sink_->operands[0], same);
      if (!safe) materialise(out, load);
      continue;
    }
    sink_is_written_ = true;
    const bool needed = needed_later(load, {}, unneeded);
    sink_is_written_ = false;
    if (needed || sink_->regions.size() > 0) materialise(out, load);
  }
}

void Loops::prepare_regions(Writer& out, const Op& op) {
  std::set<ValueId> outside;
  for (const Region& region : op.regions) {
    for_each_op(region, [&](const Op& inner) {
      for (const ValueId operand : inner.operands) {
        const Op* definer = state_.uses.definer(operand);
        if (definer != nullptr && state_.uses.order(*definer) < state_.uses.order(op)) outside.insert(operand);
      }
    });
  }
  std::set<ValueId> seen;
  const std::function<void(ValueId)> visit = [&](ValueId value) {
    if (!state_.is_pending(value) || !state_.type(value).is_tile() || !seen.insert(value).second) return;
    if (state_.is_heavy(value) && !state_.type(value).pointer) {
      materialise(out, value);
      return;
    }
    const Op* definer = state_.uses.definer(value);
    for (const ValueId operand : definer->operands) visit(operand);
    prepare(out, value);
  };
  for (const ValueId value : outside) visit(value);
}

}  // namespace heddle::lang::cpu
