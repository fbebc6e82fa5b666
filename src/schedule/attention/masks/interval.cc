#include "schedule/attention/masks/interval.h"

#include <algorithm>
#include <cmath>

namespace heddle::schedule {

Bounds bounds(double lo, double hi, double factor) {
  return std::isnan(lo) || std::isnan(hi) ? Bounds{} : Bounds{true, factor, lo, hi};
}
Bounds truth(bool never, bool always) {
  return bounds(always ? 1 : 0, never ? 0 : 1);
}

double to_type(double x, DType dtype) {
  double most = kInfinity;
  if (dtype == DType::kF16) most = 65504;
  if (dtype == DType::kBF16) most = 3.3895313892515355e38;
  if (dtype == DType::kF32) most = std::numeric_limits<float>::max();
  return std::fabs(x) > most ? std::copysign(kInfinity, x) : x;
}

Bounds either(const Bounds& a, const Bounds& b) {
  if (!a.is_known || !b.is_known || a.factor != b.factor) return {};
  return bounds(std::min(a.lo, b.lo), std::max(a.hi, b.hi), a.factor);
}

Bounds product(const Bounds& a, const Bounds& b) {
  if (!a.is_known || !b.is_known) return {};
  if (a.factor != 0 || b.factor != 0) {
    const Bounds &score = a.factor != 0 ? a : b, &by = a.factor != 0 ? b : a;
    if (!by.is_point() || !(by.lo > 0) || std::isinf(by.lo)) return {};
    return bounds(score.lo * by.lo, score.hi * by.lo, score.factor * by.lo);
  }
  const double corners[] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
  if (std::any_of(std::begin(corners), std::end(corners), [](double x) { return std::isnan(x); })) return {};
  return bounds(*std::min_element(std::begin(corners), std::end(corners)),
                *std::max_element(std::begin(corners), std::end(corners)));
}

Bounds compare(ir::Op op, const Bounds& a, const Bounds& b) {
  const Bounds open = truth(false, false);
  if (!a.is_number() || !b.is_number()) return open;
  switch (op) {
    case ir::Op::kLt:
      return truth(a.lo >= b.hi, a.hi < b.lo);
    case ir::Op::kLe:
      return truth(a.lo > b.hi, a.hi <= b.lo);
    case ir::Op::kGt:
      return truth(a.hi <= b.lo, a.lo > b.hi);
    case ir::Op::kGe:
      return truth(a.hi < b.lo, a.lo >= b.hi);
    case ir::Op::kEq:
      return truth(a.lo > b.hi || a.hi < b.lo, a.is_point() && b.is_point() && a.lo == b.lo);
    default:
      return truth(a.is_point() && b.is_point() && a.lo == b.lo, a.lo > b.hi || a.hi < b.lo);
  }
}

}  // namespace heddle::schedule
