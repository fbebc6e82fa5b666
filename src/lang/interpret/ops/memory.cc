#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "lang/analysis/waits.h"
#include "lang/interpret/environment.h"

namespace heddle::lang {
namespace {

uint64_t address_of(Cell cell) {
  return static_cast<uint64_t>(cell.i);
}

void load(Environment& env, const Op& op) {
  const Cells& pointers = env.operand(op, 0);
  const Type& type = env.type(op.results[0]);
  const bool masked = op.operands.size() > 1, has_other = op.operands.size() > 2;
  const Cell absent = env.options.checked ? poison(type) : is_float(type.element) ? Cell{.f = 0} : Cell{.i = 0};
  Cells result(pointers.size());
  for (size_t i = 0; i < pointers.size(); ++i) {
    if (masked && env.operand(op, 1)[i].i == 0) {
      result[i] = has_other ? env.operand(op, 2)[i] : absent;
    } else {
      result[i] = env.memory.load(address_of(pointers[i]), type.element, i, is_volatile(op));
    }
  }
  env.set(op.results[0], std::move(result));
}

void store(Environment& env, const Op& op) {
  const Cells &pointers = env.operand(op, 0), &values = env.operand(op, 1);
  const Element element = env.operand_type(op, 1).element;
  for (size_t i = 0; i < pointers.size(); ++i) {
    if (op.operands.size() > 2 && env.operand(op, 2)[i].i == 0) continue;
    env.memory.store(address_of(pointers[i]), element, values[i], i);
  }
}

Cell combined(std::string_view kind, Element element, Cell old, Cell value) {
  if (kind == "xchg") return value;
  if (is_float(element)) {
    if (kind == "add") return {.f = round_float(element, old.f + value.f)};
    return {.f = kind == "max" ? std::fmax(old.f, value.f) : std::fmin(old.f, value.f)};
  }
  const bool less =
      element == Element::kU64 ? static_cast<uint64_t>(old.i) < static_cast<uint64_t>(value.i) : old.i < value.i;
  const int64_t a = old.i, b = value.i;
  if (kind == "add")
    return {.i = wrap_int(element, static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)))};
  if (kind == "and") return {.i = a & b};
  if (kind == "or") return {.i = a | b};
  if (kind == "xor") return {.i = a ^ b};
  return {.i = (kind == "max") == less ? b : a};
}

// Reads, and writes what `update` makes of it.
template <typename F>
Cell update_cell(Environment& env, uint64_t address, Element element, size_t lane, const F& update) {
  env.memory.check(address, element, lane, Memory::Access::kAtomic);
  return env.memory.exchange(address, element, update);
}

void synchronise(Environment& env, const Op& op) {
  if (op.attributes.word("sem", "acq_rel") != "relaxed") env.memory.order_program();
}

void atomic_rmw(Environment& env, const Op& op) {
  synchronise(env, op);
  const Cells &pointers = env.operand(op, 0), &values = env.operand(op, 1);
  const Type& type = env.type(op.results[0]);
  const std::string_view kind = op.attributes.word("kind");
  Cells result(pointers.size(), is_float(type.element) ? Cell{.f = 0} : Cell{.i = 0});
  for (size_t i = 0; i < pointers.size(); ++i) {
    if (op.operands.size() > 2 && env.operand(op, 2)[i].i == 0) continue;
    result[i] = update_cell(env, address_of(pointers[i]), type.element, i,
                            [&](Cell old) { return combined(kind, type.element, old, values[i]); });
  }
  env.set(op.results[0], std::move(result));
}

void atomic_cas(Environment& env, const Op& op) {
  synchronise(env, op);
  const Cells &pointers = env.operand(op, 0), &expected = env.operand(op, 1), &values = env.operand(op, 2);
  const Element element = env.type(op.results[0]).element;
  Cells result(pointers.size());
  for (size_t i = 0; i < pointers.size(); ++i) {
    result[i] = update_cell(env, address_of(pointers[i]), element, i, [&](Cell old) {
      return encode(element, old) == encode(element, expected[i]) ? values[i] : old;
    });
  }
  env.set(op.results[0], std::move(result));
}

// ---- Views

void make_view(Environment& env, const Op& op) {
  Cells view;
  for (size_t i = 0; i < op.operands.size(); ++i) view.push_back(env.operand(op, i)[0]);
  view.push_back({.i = op.attributes.word("padding") == "nan"});
  env.set(op.results[0], std::move(view));
}

// Calls f(element, address, inside) for each element of the box at these offsets.
template <typename F>
void for_each_in_box(const Cells& view, const Type& type, const std::vector<int64_t>& offsets,
                     const std::vector<int64_t>& checked, const F& f) {
  const size_t rank = type.shape.size();
  std::vector<int64_t> at(rank, 0);
  for (size_t i = 0; i < static_cast<size_t>(type.elements()); ++i) {
    int64_t element = 0;
    bool inside = true;
    for (size_t d = 0; d < rank; ++d) {
      const int64_t index = offsets[d] + at[d];
      element += index * view[1 + rank + d].i;
      const bool is_checked = std::find(checked.begin(), checked.end(), static_cast<int64_t>(d)) != checked.end();
      if (is_checked && (index < 0 || index >= view[1 + d].i)) inside = false;
    }
    f(i, address_of(view[0]) + static_cast<uint64_t>(element * size_of(type.element)), inside);
    for (size_t d = rank; d-- > 0;) {
      if (++at[d] < type.shape[d]) break;
      at[d] = 0;
    }
  }
}

std::vector<int64_t> offsets_of(const Environment& env, const Op& op) {
  std::vector<int64_t> offsets;
  for (size_t d = 0; d < env.operand_type(op, 0).shape.size(); ++d) offsets.push_back(env.operand(op, 1 + d)[0].i);
  return offsets;
}

Cell padding_of(const Cells& view, Element element) {
  if (!is_float(element)) return {.i = 0};
  return {.f = view.back().i != 0 ? std::numeric_limits<double>::quiet_NaN() : 0.0};
}

void access_view(Environment& env, const Op& op) {
  const Cells& view = env.operand(op, 0);
  const Type& type = env.operand_type(op, 0);
  std::vector<int64_t> checked = op.attributes.list("check");
  if (op.code == OpCode::kAtomicView) {
    for (int64_t d = 0; d < type.rank(); ++d) checked.push_back(d);
  }
  Cells result(op.code == OpCode::kLoadView ? static_cast<size_t>(type.elements()) : 0);
  const Cells& values = env.operand(op, op.operands.size() - 1);
  const std::string_view kind = op.attributes.word("kind");
  for_each_in_box(view, type, offsets_of(env, op), checked, [&](size_t i, uint64_t address, bool inside) {
    if (op.code == OpCode::kLoadView) {
      result[i] = inside ? env.memory.load(address, type.element, i, is_volatile(op)) : padding_of(view, type.element);
    } else if (inside && op.code == OpCode::kStoreView) {
      env.memory.store(address, type.element, values[i], i);
    } else if (inside) {
      update_cell(env, address, type.element, i,
                  [&](Cell old) { return combined(kind, type.element, old, values[i]); });
    }
  });
  if (op.code == OpCode::kLoadView) env.set(op.results[0], std::move(result));
}

void access_rows(Environment& env, const Op& op) {
  const Cells &view = env.operand(op, 0), &rows = env.operand(op, 1);
  const Type& type = env.operand_type(op, 0);
  const auto columns = static_cast<size_t>(type.shape[1]);
  const bool gathers = op.code == OpCode::kGatherView;
  Cells result(gathers ? rows.size() * columns : 0);
  for (size_t r = 0; r < rows.size(); ++r) {
    const std::vector<int64_t> offsets{rows[r].i, env.operand(op, 2)[0].i};
    for_each_in_box(view, type, offsets, {0, 1}, [&](size_t i, uint64_t address, bool inside) {
      const size_t at = r * columns + i;
      if (gathers) {
        result[at] = inside ? env.memory.load(address, type.element, at) : padding_of(view, type.element);
      } else if (inside) {
        env.memory.store(address, type.element, env.operand(op, 3)[at], at);
      }
    });
  }
  if (gathers) env.set(op.results[0], std::move(result));
}

}  // namespace

bool run_memory_op(Environment& env, const Op& op) {
  switch (op.code) {
    case OpCode::kLoad:
      load(env, op);
      return true;
    case OpCode::kStore:
      store(env, op);
      return true;
    case OpCode::kAtomicRmw:
      atomic_rmw(env, op);
      return true;
    case OpCode::kAtomicCas:
      atomic_cas(env, op);
      return true;
    case OpCode::kMakeView:
      make_view(env, op);
      return true;
    case OpCode::kLoadView:
    case OpCode::kStoreView:
    case OpCode::kAtomicView:
      access_view(env, op);
      return true;
    case OpCode::kGatherView:
    case OpCode::kScatterView:
      access_rows(env, op);
      return true;
    default:
      return false;
  }
}

}  // namespace heddle::lang
