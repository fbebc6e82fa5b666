#include "schedule/attention/masks/score_bounds.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/divide.h"
#include "schedule/attention/masks/positions.h"
#include "schedule/expr/expr_walk.h"

namespace heddle::schedule {
namespace {

int64_t floor_of(int64_t x, int64_t by) {
  return x >= 0 ? x / by : -ceil_div(-x, by);
}

// A result within its type; what wraps is not looked at.
Bounds within(DType dtype, double lo, double hi, double factor = 0) {
  if (is_float(dtype)) return bounds(to_type(lo, dtype), to_type(hi, dtype), factor);
  const double most = std::ldexp(1, std::min(bits_of(dtype), 53) - (is_signed_int(dtype) ? 1 : 0)) - 1;
  const bool fits = lo >= (is_signed_int(dtype) ? -most : 0) && hi <= most;
  return fits ? bounds(lo, hi, factor) : Bounds{};
}

}  // namespace

ScoreBounds::ScoreBounds(Epilogue& scores, const std::function<const Tensor*(uint32_t)>& constant)
    : e_(scores), root_(scores.stores.at(0).value), values_(scores.pool.size()), masks_(scores.pool.size()) {
  ExprWalk(e_.pool, Follow::kIndices)
      .run(
          root_, [](ExprId) { return true; }, [this](ExprId id) { order_.push_back(id); });
  positions_ = positions_of(scores.pool, order_);
  differences_.resize(positions_.size());
  for (const ExprId id : order_) {
    const Expr& e = e_.pool[id];
    const Tensor* tensor = e.kind == Expr::Kind::kLoad ? constant(e.id) : nullptr;
    if (tensor != nullptr) masks_[id] = constant_mask(*tensor, e.index);
    if (e.kind != Expr::Kind::kOp || !ir::is_comparison(e.op)) continue;
    const auto &a = positions_[e.args[0]], &b = positions_[e.args[1]];
    if (a && b) differences_[id] = scores.pool.indices.add(*a, scores.pool.indices.scale(*b, -1));
  }
}

Bounds ScoreBounds::at(const Box& box) {
  box_ = box;
  for (const ExprId id : order_) {
    const bool is_length = length_ == id;
    values_[id] = is_length ? bounds(static_cast<double>(lengths_.lo), static_cast<double>(lengths_.hi)) : of(id);
    const bool is_open = !values_[id].is_known && e_.pool[id].dtype == DType::kBool;
    if (is_open) values_[id] = truth(false, false);
  }
  return values_[root_];
}

std::unique_ptr<ConstantMask> ScoreBounds::constant_mask(const Tensor& tensor, const Index& index) const {
  constexpr size_t kMostElements = size_t{1} << 26;
  std::optional<ConstantMask::Places> places = places_of(e_, index);
  if (!places) return nullptr;
  if (places->rows.size() * places->keys.size() * places->batches.size() > kMostElements) return nullptr;
  return std::make_unique<ConstantMask>(tensor, std::move(*places));
}

Range ScoreBounds::range_of(const Index& index) const {
  Range range{index.constant, index.constant};
  for (const auto& [id, factor] : index.terms) {
    const Range atom = range_of(e_.pool.indices.atom(id));
    range.lo += factor * (factor > 0 ? atom.lo : atom.hi), range.hi += factor * (factor > 0 ? atom.hi : atom.lo);
  }
  return range;
}
Range ScoreBounds::range_of(const Atom& atom) const {
  switch (atom.kind) {
    case Atom::Kind::kVar:
      if (atom.id == e_.row) return box_.rows;
      if (atom.id == e_.col) return box_.keys;
      return atom.range;
    case Atom::Kind::kDiv: {
      const Range arg = range_of(atom.arg);
      return {floor_of(arg.lo, atom.a), floor_of(arg.hi, atom.a)};
    }
    case Atom::Kind::kMod: {
      const Range arg = range_of(atom.arg);
      const int64_t turn = floor_of(arg.lo, atom.a);
      if (turn != floor_of(arg.hi, atom.a)) return {0, atom.a - 1};
      return {arg.lo - turn * atom.a, arg.hi - turn * atom.a};
    }
    case Atom::Kind::kClamp: {
      const Range arg = range_of(atom.arg);
      return {std::clamp(arg.lo, atom.a, atom.b), std::clamp(arg.hi, atom.a, atom.b)};
    }
    case Atom::Kind::kReflect:
    case Atom::Kind::kDynamic:
      return atom.range;
  }
  return atom.range;
}

Bounds ScoreBounds::of_position(const Index& index) const {
  const Range range = range_of(index);
  return bounds(static_cast<double>(range.lo), static_cast<double>(range.hi));
}

Bounds ScoreBounds::of(ExprId id) const {
  if (positions_[id]) return of_position(*positions_[id]);
  const Expr& e = e_.pool[id];
  switch (e.kind) {
    case Expr::Kind::kConstant: {
      const double x =
          is_float(e.dtype) ? std::bit_cast<double>(e.bits) : static_cast<double>(static_cast<int64_t>(e.bits));
      return bounds(to_type(x, e.dtype), to_type(x, e.dtype));
    }
    case Expr::Kind::kLocal:
      return e.id == 0 ? bounds(0, 0, 1) : Bounds{};
    case Expr::Kind::kLoad:
      return masks_[id] ? masks_[id]->at(box_) : Bounds{};
    case Expr::Kind::kIndex:
      return of_position(e.index);
    case Expr::Kind::kGuard: {
      const Range range = range_of(e.index);
      if (range.lo >= e.lo && range.hi < e.hi) return values_[e.args[0]];
      if (range.hi < e.lo || range.lo >= e.hi) return values_[e.args[1]];
      return either(values_[e.args[0]], values_[e.args[1]]);
    }
    case Expr::Kind::kOp:
      if (differences_[id]) return compare(e.op, of_position(*differences_[id]), bounds(0, 0));
      return of_op(e);
    case Expr::Kind::kRandom:
      return {};
  }
  return {};
}

Bounds ScoreBounds::of_op(const Expr& e) const {
  const auto arg = [&](size_t i) -> const Bounds& { return values_[e.args[i]]; };
  if (ir::is_comparison(e.op)) return compare(e.op, arg(0), arg(1));
  switch (e.op) {
    case ir::Op::kCast:
      return cast(e);
    case ir::Op::kNot:
    case ir::Op::kAnd:
    case ir::Op::kOr:
    case ir::Op::kXor:
      return e.dtype == DType::kBool ? of_logic(e) : Bounds{};
    case ir::Op::kIsNan:
    case ir::Op::kIsInf: {
      // Products are finite, and bounds are no NaN.
      const bool never = arg(0).is_known && (e.op == ir::Op::kIsNan || std::max(-arg(0).lo, arg(0).hi) < kInfinity);
      return truth(never, false);
    }
    case ir::Op::kSelect:
      if (arg(0).is_point()) return arg(0).lo != 0 ? arg(1) : arg(2);
      return either(arg(1), arg(2));
    default:
      return of_arithmetic(e);
  }
}

Bounds ScoreBounds::of_logic(const Expr& e) const {
  const Bounds &a = values_[e.args[0]], &b = values_[e.args.back()];
  switch (e.op) {
    case ir::Op::kNot:
      return bounds(1 - a.hi, 1 - a.lo);
    case ir::Op::kOr:
      return bounds(std::max(a.lo, b.lo), std::max(a.hi, b.hi));
    case ir::Op::kAnd:
      return bounds(std::min(a.lo, b.lo), std::min(a.hi, b.hi));
    default: {  // exclusive or
      const bool known = a.is_point() && b.is_point();
      return truth(known && a.lo == b.lo, known && a.lo != b.lo);
    }
  }
}

Bounds ScoreBounds::of_arithmetic(const Expr& e) const {
  const Bounds &a = values_[e.args[0]], &b = values_[e.args.back()];
  switch (e.op) {
    case ir::Op::kNeg:
      return a.is_number() ? within(e.dtype, -a.hi, -a.lo) : Bounds{};
    case ir::Op::kAbs:
      if (!a.is_number()) return {};
      return bounds(std::max({a.lo, -a.hi, 0.0}), std::max(-a.lo, a.hi));
    case ir::Op::kSign: {
      const auto sign = [](double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0; };
      return a.is_number() ? bounds(sign(a.lo), sign(a.hi)) : Bounds{};
    }
    case ir::Op::kFloor:
      return a.is_number() ? bounds(std::floor(a.lo), std::floor(a.hi)) : Bounds{};
    case ir::Op::kCeil:
      return a.is_number() ? bounds(std::ceil(a.lo), std::ceil(a.hi)) : Bounds{};
    case ir::Op::kAdd:
      if (!a.is_known || !b.is_known || (a.factor != 0 && b.factor != 0)) return {};
      return within(e.dtype, a.lo + b.lo, a.hi + b.hi, a.factor + b.factor);
    case ir::Op::kSub:
      if (!a.is_known || !b.is_number()) return {};
      return within(e.dtype, a.lo - b.hi, a.hi - b.lo, a.factor);
    case ir::Op::kMul: {
      const Bounds all = product(a, b);
      return all.is_known ? within(e.dtype, all.lo, all.hi, all.factor) : all;
    }
    case ir::Op::kDiv:
      if (!is_float(e.dtype) || !b.is_point() || b.lo == 0) return {};
      return product(a, bounds(1 / b.lo, 1 / b.lo));
    case ir::Op::kMax:
      return a.is_number() && b.is_number() ? bounds(std::max(a.lo, b.lo), std::max(a.hi, b.hi)) : Bounds{};
    case ir::Op::kMin:
      return a.is_number() && b.is_number() ? bounds(std::min(a.lo, b.lo), std::min(a.hi, b.hi)) : Bounds{};
    default:
      return {};
  }
}

Bounds ScoreBounds::cast(const Expr& e) const {
  const Bounds& from = values_[e.args[0]];
  if (!from.is_known) return {};
  if (from.factor != 0) return is_float(e.dtype) ? from : Bounds{};
  if (e.dtype == DType::kBool) return truth(from.lo == 0 && from.hi == 0, from.lo > 0 || from.hi < 0);
  if (is_float(e.dtype)) return bounds(to_type(from.lo, e.dtype), to_type(from.hi, e.dtype));
  return within(e.dtype, std::trunc(from.lo), std::trunc(from.hi));
}

}  // namespace heddle::schedule
