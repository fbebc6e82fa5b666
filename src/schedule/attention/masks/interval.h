#pragma once

#include <limits>

#include "heddle/dtype.h"
#include "ir/graph.h"
#include "schedule/expr/index.h"

namespace heddle::schedule {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Ranges of rows and keys, with inclusive ends.
struct Box {
  Range rows, keys;
};

// Bounds of a value over all elements of a box. The value is in factor * p + [lo, hi], where p is the element of the
// first product (Q K^T); if factor is 0, the value is in [lo, hi]. If `is_known` is false, nothing is known about the
// value.
struct Bounds {
  bool is_known = false;
  double factor = 0, lo = 0, hi = 0;

  bool is_number() const { return is_known && factor == 0; }
  bool is_point() const { return is_number() && lo == hi; }
};
Bounds bounds(double lo, double hi, double factor = 0);
Bounds truth(bool never, bool always);

// Converts a bound to a type: a bound beyond the type's largest finite value becomes infinite.
double to_type(double x, DType dtype);

// either(): bounds of a value that equals a or b. product(): bounds of a * b. compare(): bounds of the comparison `op`
// of a and b.
Bounds either(const Bounds& a, const Bounds& b);
Bounds product(const Bounds& a, const Bounds& b);
Bounds compare(ir::Op op, const Bounds& a, const Bounds& b);

}  // namespace heddle::schedule
