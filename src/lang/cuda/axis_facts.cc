#include "lang/cuda/axis_facts.h"

#include <algorithm>
#include <numeric>

namespace heddle::lang::cuda {
namespace {

constexpr int64_t kMost = int64_t{1} << 30;

int64_t power_of_two_in(int64_t n) {
  return n == 0 ? kMost : std::min(kMost, n & -n);
}
int64_t least(int64_t a, int64_t b) {
  return std::gcd(a, b);
}

size_t rank_of(const Type& type) {
  return static_cast<size_t>(std::max(type.rank(), 1));
}

class Analysis {
 public:
  explicit Analysis(const Kernel& kernel)
      : kernel_(kernel), facts_(kernel.values.size()), known_(kernel.values.size()) {
    for (const Kernel::Parameter& p : kernel.parameters) {
      AxisFacts f = AxisFacts::unknown(1);
      f.divisor[0] = power_of_two_in(std::max<int64_t>(1, p.attributes.integer("divisible", 1)));
      set(p.value, std::move(f));
    }
    run(kernel.body);
  }
  std::vector<AxisFacts> take() {
    for (size_t v = 0; v < facts_.size(); ++v) {
      if (!known_[v]) facts_[v] = AxisFacts::unknown(rank_of(kernel_.values[v].type));
    }
    return std::move(facts_);
  }

 private:
  const AxisFacts& get(ValueId v) const { return facts_[static_cast<size_t>(v)]; }
  const AxisFacts& operand(const Op& op, size_t i) const { return get(op.operands[i]); }
  const Type& type(ValueId v) const { return kernel_.type(v); }
  void set(ValueId v, AxisFacts f) {
    facts_[static_cast<size_t>(v)] = std::move(f);
    known_[static_cast<size_t>(v)] = true;
  }

  // What holds of both; whether that is less than what was known of `v`.
  bool meet(ValueId v, const AxisFacts& with) {
    if (!known_[static_cast<size_t>(v)]) {
      set(v, with);
      return true;
    }
    AxisFacts& f = facts_[static_cast<size_t>(v)];
    bool changed = false;
    const auto lower = [&](std::vector<int64_t>& mine, const std::vector<int64_t>& others) {
      for (size_t d = 0; d < mine.size(); ++d) {
        const int64_t both = least(mine[d], others[d]);
        changed = changed || both != mine[d];
        mine[d] = both;
      }
    };
    lower(f.contiguous, with.contiguous);
    lower(f.divisor, with.divisor);
    lower(f.constant, with.constant);
    if (f.value && f.value != with.value) {
      f.value.reset();
      changed = true;
    }
    return changed;
  }

  void run(const Region& region) {
    for (const Op& op : region.ops) run(op);
  }
  void run(const Op& op) {
    switch (op.code) {
      case OpCode::kFor:
        return run_for(op);
      case OpCode::kWhile:
        return run_while(op);
      case OpCode::kIf:
        for (const Region& region : op.regions) {
          run(region);
          if (region.ops.empty()) continue;
          for (size_t i = 0; i < op.results.size(); ++i) meet(op.results[i], get(region.ops.back().operands[i]));
        }
        return;
      default:
        break;
    }
    for (const ValueId r : op.results) set(r, AxisFacts::unknown(rank_of(type(r))));
    if (op.results.size() == 1) set(op.results[0], of(op));
    for (const Region& region : op.regions) {
      for (const ValueId a : region.arguments) set(a, AxisFacts::unknown(1));
      run(region);
    }
  }

  // Regions are run until nothing changes: what holds of a carried value at first and after every trip.
  void run_for(const Op& op) {
    const Region& body = op.regions[0];
    AxisFacts index = AxisFacts::unknown(1);
    index.divisor[0] = least(operand(op, 0).divisor[0], operand(op, 2).divisor[0]);
    set(body.arguments[0], index);
    for (size_t i = 3; i < op.operands.size(); ++i) set(body.arguments[i - 2], operand(op, i));
    for (bool changed = true; changed;) {
      changed = false;
      run(body);
      for (size_t i = 0; i < op.results.size(); ++i) {
        changed = meet(body.arguments[i + 1], get(body.ops.back().operands[i])) || changed;
      }
    }
    for (size_t i = 0; i < op.results.size(); ++i) set(op.results[i], get(body.arguments[i + 1]));
  }
  void run_while(const Op& op) {
    const Region &before = op.regions[0], &after = op.regions[1];
    for (size_t i = 0; i < op.operands.size(); ++i) set(before.arguments[i], operand(op, i));
    for (bool changed = true; changed;) {
      changed = false;
      run(before);
      const Op& condition = before.ops.back();
      for (size_t i = 0; i < op.results.size(); ++i) {
        set(after.arguments[i], get(condition.operands[i + 1]));
        set(op.results[i], get(condition.operands[i + 1]));
      }
      run(after);
      for (size_t i = 0; i < before.arguments.size(); ++i) {
        changed = meet(before.arguments[i], get(after.ops.back().operands[i])) || changed;
      }
    }
  }

  AxisFacts of_number(int64_t value, const Type& type) const {
    AxisFacts f = AxisFacts::unknown(rank_of(type));
    for (size_t d = 0; d < f.divisor.size(); ++d) {
      f.divisor[d] = power_of_two_in(value);
      f.constant[d] = type.is_tile() ? type.shape[d] : 1;
    }
    f.value = value;
    return f;
  }

  AxisFacts of(const Op& op) const {
    const Type& result = type(op.results[0]);
    AxisFacts f = AxisFacts::unknown(rank_of(result));
    switch (op.code) {
      case OpCode::kConstant: {
        const Attribute& value = *op.attributes.find("value");
        return value.kind == Attribute::Kind::kInteger && !is_float(result.element) ? of_number(value.integer, result)
                                                                                    : f;
      }
      case OpCode::kIota:
        f.contiguous[0] = result.shape[0];
        f.divisor[0] = power_of_two_in(op.attributes.integer("start"));
        return f;
      case OpCode::kSplat:
        for (size_t d = 0; d < f.divisor.size(); ++d) {
          f.divisor[d] = operand(op, 0).divisor[0];
          f.constant[d] = result.shape[d];
        }
        f.value = operand(op, 0).value;
        return f;
      case OpCode::kExpandDims: {
        f = operand(op, 0);
        const auto axis = static_cast<std::ptrdiff_t>(op.attributes.integer("axis"));
        // Of every element.
        int64_t all = kMost;
        for (size_t d = 0; d < f.divisor.size(); ++d) all = least(all, f.contiguous[d] > 1 ? 1 : f.divisor[d]);
        f.contiguous.insert(f.contiguous.begin() + axis, 1);
        f.divisor.insert(f.divisor.begin() + axis, all);
        f.constant.insert(f.constant.begin() + axis, 1);
        return f;
      }
      case OpCode::kBroadcast: {
        f = operand(op, 0);
        const Type& from = type(op.operands[0]);
        for (size_t d = 0; d < f.divisor.size(); ++d) {
          if (from.shape[d] != result.shape[d]) f.constant[d] = result.shape[d];
        }
        return f;
      }
      case OpCode::kPermute:
        return permuted(op);
      case OpCode::kCast: {
        const Type& from = type(op.operands[0]);
        const bool widens = !from.pointer && !is_float(from.element) && !is_float(result.element) &&
                            from.element != Element::kI1 && bits_of(from.element) <= bits_of(result.element);
        return widens ? operand(op, 0) : f;
      }
      case OpCode::kHint:
        return hinted(op);
      case OpCode::kAdd:
      case OpCode::kSub:
      case OpCode::kAddPtr:
        return is_float(result.element) && !result.pointer ? f : sum(op, result);
      case OpCode::kMul:
        return is_float(result.element) ? f : product(op, result);
      case OpCode::kRem:
        return is_float(result.element) ? f : remainder(op, result);
      case OpCode::kMin:
      case OpCode::kMax:
      case OpCode::kSelect: {
        const size_t first = op.code == OpCode::kSelect ? 1 : 0;
        for (size_t d = 0; d < f.divisor.size(); ++d) {
          f.divisor[d] = least(operand(op, first).divisor[d], operand(op, first + 1).divisor[d]);
          // Groups of neighbours may be cut anywhere.
          const AxisFacts &a = operand(op, first), &b = operand(op, first + 1);
          if (a.contiguous[d] != 1 || b.contiguous[d] != 1) f.divisor[d] = 1;
        }
        f.constant = as_constant_as_operands(op).constant;
        return f;
      }
      default:
        if (ir::is_comparison(op.code)) return compared(op);
        return info_of(op.code).has(kElementwise) ? as_constant_as_operands(op) : f;
    }
  }

  AxisFacts as_constant_as_operands(const Op& op) const {
    AxisFacts f = AxisFacts::unknown(operand(op, 0).constant.size());
    f.constant = operand(op, 0).constant;
    for (const ValueId v : op.operands) {
      for (size_t d = 0; d < f.constant.size(); ++d) f.constant[d] = least(f.constant[d], get(v).constant[d]);
    }
    return f;
  }

  // A bound that is a multiple of a number cuts no aligned group of so many neighbours.
  AxisFacts compared(const Op& op) const {
    AxisFacts f = as_constant_as_operands(op);
    if (op.code == OpCode::kEq || op.code == OpCode::kNe) return f;
    const bool below = op.code == OpCode::kLt || op.code == OpCode::kGe;
    const AxisFacts &index = operand(op, below ? 0 : 1), &bound = operand(op, below ? 1 : 0);
    for (size_t d = 0; d < f.constant.size(); ++d) {
      const int64_t group =
          least(least(index.contiguous[d], index.divisor[d]), least(bound.divisor[d], bound.constant[d]));
      f.constant[d] = std::max(f.constant[d], group);
    }
    return f;
  }

  AxisFacts permuted(const Op& op) const {
    const std::vector<int64_t> order = op.attributes.list("order");
    AxisFacts f = AxisFacts::unknown(order.size());
    for (size_t d = 0; d < order.size(); ++d) {
      const auto from = static_cast<size_t>(order[d]);
      f.contiguous[d] = operand(op, 0).contiguous[from];
      f.divisor[d] = operand(op, 0).divisor[from];
      f.constant[d] = operand(op, 0).constant[from];
    }
    return f;
  }

  AxisFacts hinted(const Op& op) const {
    AxisFacts f = operand(op, 0);
    const auto raise = [&](const char* name, std::vector<int64_t>& to) {
      const std::vector<int64_t> given = op.attributes.list(name);
      for (size_t d = 0; d < given.size() && d < to.size(); ++d) to[d] = std::max(to[d], given[d]);
    };
    raise("multiple_of", f.divisor);
    raise("contiguous", f.contiguous);
    raise("constancy", f.constant);
    return f;
  }

  AxisFacts sum(const Op& op, const Type& result) const {
    const AxisFacts &a = operand(op, 0), &b = operand(op, 1);
    const bool minus = op.code == OpCode::kSub;
    // An offset of so many elements moves a pointer by bytes.
    const int64_t scale = op.code == OpCode::kAddPtr ? power_of_two_in(size_of(result.element)) : 1;
    AxisFacts f = AxisFacts::unknown(a.divisor.size());
    for (size_t d = 0; d < f.divisor.size(); ++d) {
      const int64_t from_a = least(a.contiguous[d], b.constant[d]);
      const int64_t from_b = minus ? 1 : least(a.constant[d], b.contiguous[d]);
      f.contiguous[d] = std::max(from_a, from_b);
      f.divisor[d] = least(a.divisor[d], std::min(kMost, b.divisor[d] * scale));
      // A group that begins within another one is a multiple of what both are.
      const int64_t group = std::max(a.contiguous[d], b.contiguous[d]);
      if (f.contiguous[d] < group) f.divisor[d] = least(f.divisor[d], f.contiguous[d] * scale);
      f.constant[d] = least(a.constant[d], b.constant[d]);
    }
    if (a.value && b.value) f.value = minus ? *a.value - *b.value : *a.value + *b.value;
    return f;
  }

  AxisFacts product(const Op& op, const Type& result) const {
    const AxisFacts &a = operand(op, 0), &b = operand(op, 1);
    if (a.value && b.value) return of_number(*a.value * *b.value, result);
    if (b.value == 1) return a;
    if (a.value == 1) return b;
    AxisFacts f = AxisFacts::unknown(a.divisor.size());
    for (size_t d = 0; d < f.divisor.size(); ++d) {
      // Of every element, not only of the first of a group.
      const int64_t of_a = a.contiguous[d] > 1 ? 1 : a.divisor[d], of_b = b.contiguous[d] > 1 ? 1 : b.divisor[d];
      f.divisor[d] = std::min(kMost, of_a * of_b);
      f.constant[d] = least(a.constant[d], b.constant[d]);
    }
    return f;
  }

  AxisFacts remainder(const Op& op, const Type& result) const {
    const AxisFacts &a = operand(op, 0), &b = operand(op, 1);
    AxisFacts f = AxisFacts::unknown(a.divisor.size());
    for (size_t d = 0; d < f.divisor.size(); ++d) {
      if (b.constant[d] != (result.is_tile() ? result.shape[d] : 1)) continue;  // several divisors
      f.contiguous[d] = least(a.contiguous[d], least(a.divisor[d], b.divisor[d]));
      f.divisor[d] = least(a.divisor[d], b.divisor[d]);
      if (f.contiguous[d] < a.contiguous[d]) f.divisor[d] = least(f.divisor[d], f.contiguous[d]);
      f.constant[d] = least(a.constant[d], b.constant[d]);
    }
    return f;
  }

  const Kernel& kernel_;
  std::vector<AxisFacts> facts_;
  std::vector<bool> known_;
};

}  // namespace

std::vector<AxisFacts> axis_facts(const Kernel& kernel) {
  return Analysis(kernel).take();
}

}  // namespace heddle::lang::cuda
