#pragma once

#include <limits>

#include "heddle/dtype.h"
#include "ir/graph.h"
#include "schedule/expr/index.h"

namespace heddle::schedule {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Rows and keys, inclusive.
struct Box {
  Range rows, keys;
};

// A value anywhere in a box: factor * the product + [lo, hi], without the product where factor is 0. `is_known` is
// false of a value that may be anything.
struct Bounds {
  bool is_known = false;
  double factor = 0, lo = 0, hi = 0;

  bool is_number() const { return is_known && factor == 0; }
  bool is_point() const { return is_number() && lo == hi; }
};
Bounds bounds(double lo, double hi, double factor = 0);
Bounds truth(bool never, bool always);

// Finite bounds of a type become infinite where it has no such value.
double to_type(double x, DType dtype);

// Of a value that is one of two, of a product, of a comparison.
Bounds either(const Bounds& a, const Bounds& b);
Bounds product(const Bounds& a, const Bounds& b);
Bounds compare(ir::Op op, const Bounds& a, const Bounds& b);

}  // namespace heddle::schedule
