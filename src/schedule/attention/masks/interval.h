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

// Bounds of a value over a box: factor * p + [lo, hi], where p is the element of the first product (Q K^T); just
// [lo, hi] if factor is 0. If `is_known` is false, the value may be anything.
struct Bounds {
  bool is_known = false;
  double factor = 0, lo = 0, hi = 0;

  bool is_number() const { return is_known && factor == 0; }
  bool is_point() const { return is_number() && lo == hi; }
};
Bounds bounds(double lo, double hi, double factor = 0);
Bounds truth(bool never, bool always);

// Converts a bound to a type: it becomes infinite if it exceeds the type's largest finite value.
double to_type(double x, DType dtype);

// Bounds of a value that equals a or b, of a * b, of a comparison of a and b.
Bounds either(const Bounds& a, const Bounds& b);
Bounds product(const Bounds& a, const Bounds& b);
Bounds compare(ir::Op op, const Bounds& a, const Bounds& b);

}  // namespace heddle::schedule
