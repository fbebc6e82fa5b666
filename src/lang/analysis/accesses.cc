#include "lang/analysis/accesses.h"

#include <algorithm>
#include <utility>

namespace heddle::lang {
namespace {

using Parameters = std::vector<bool>;

// Which parameters each value may be made of, through arithmetic, loops and branches.
class Origins {
 public:
  explicit Origins(const Kernel& kernel) : kernel_(kernel), of_(kernel.values.size()) {
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
      const ValueId value = kernel.parameters[i].value;
      if (!kernel.type(value).pointer) continue;
      at(value).resize(kernel.parameters.size());
      at(value)[i] = true;
    }
    do {
      changed_ = false;
      visit(kernel.body);
    } while (changed_);
  }

  const Parameters& of(ValueId value) const { return of_[static_cast<size_t>(value)]; }
  std::vector<Parameters> take() { return std::move(of_); }

 private:
  Parameters& at(ValueId value) { return of_[static_cast<size_t>(value)]; }

  // Addresses: pointers, views of memory, and integers that may have been pointers.
  bool may_hold_address(ValueId value) const {
    const Type& type = kernel_.type(value);
    return type.pointer || type.is_view() || bits_of(type.element) == 64;
  }

  void flow(ValueId from, ValueId to) {
    const Parameters& source = of(from);
    if (source.empty() || !may_hold_address(to)) return;
    Parameters& target = at(to);
    target.resize(source.size());
    for (size_t i = 0; i < source.size(); ++i) {
      changed_ = changed_ || (source[i] && !target[i]);
      target[i] = target[i] || source[i];
    }
  }

  void flow(const std::vector<ValueId>& from, size_t skipped, const std::vector<ValueId>& to, size_t first = 0) {
    for (size_t i = skipped; i < from.size() && first + i - skipped < to.size(); ++i)
      flow(from[i], to[first + i - skipped]);
  }

  static const std::vector<ValueId>& end_of(const Region& region) { return region.ops.back().operands; }

  void visit(const Region& region) {
    for (const Op& op : region.ops) visit(op);
  }

  void visit(const Op& op) {
    for (const Region& region : op.regions) visit(region);
    switch (op.code) {
      case OpCode::kFor: {
        constexpr size_t kBounds = 3;
        const Region& body = op.regions[0];
        flow(op.operands, kBounds, body.arguments, 1);
        flow(op.operands, kBounds, op.results);
        flow(end_of(body), 0, body.arguments, 1);
        flow(end_of(body), 0, op.results);
        return;
      }
      case OpCode::kWhile: {
        const Region &before = op.regions[0], &after = op.regions[1];
        flow(op.operands, 0, before.arguments);
        flow(end_of(before), 1, after.arguments);
        flow(end_of(before), 1, op.results);
        flow(end_of(after), 0, before.arguments);
        return;
      }
      case OpCode::kIf:
        for (const Region& branch : op.regions) {
          if (!branch.ops.empty()) flow(end_of(branch), 0, op.results);
        }
        return;
      default:
        break;
    }
    if (info_of(op.code).has(kReads)) return;  // what memory holds is no address in a parameter
    for (const ValueId operand : op.operands) {
      for (const ValueId result : op.results) flow(operand, result);
    }
  }

  const Kernel& kernel_;
  std::vector<Parameters> of_;  // by value; empty: of none
  bool changed_ = false;
};

}  // namespace

std::vector<std::vector<bool>> origins_of(const Kernel& kernel) {
  return Origins(kernel).take();
}

std::vector<Accesses> accesses_of(const Kernel& kernel) {
  const Origins origins(kernel);
  std::vector<Accesses> accesses(kernel.parameters.size());
  for_each_op(kernel.body, [&](const Op& op) {
    const OpInfo& info = info_of(op.code);
    const bool is_opaque = op.code == OpCode::kInlineAsm;
    if (!info.has(kReads) && !info.has(kWrites) && !is_opaque) return;
    const size_t addresses = is_opaque ? op.operands.size() : 1;
    for (size_t o = 0; o < addresses; ++o) {
      const Parameters& touched = origins.of(op.operands[o]);
      for (size_t i = 0; i < touched.size(); ++i) {
        if (!touched[i]) continue;
        accesses[i].reads = accesses[i].reads || info.has(kReads) || is_opaque;
        accesses[i].writes = accesses[i].writes || info.has(kWrites) || is_opaque;
      }
    }
  });
  return accesses;
}

}  // namespace heddle::lang
