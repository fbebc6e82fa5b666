#pragma once

#include <vector>

#include "tests/fuzz/graph_generator.h"

namespace heddle::fuzz {

// What a case's outputs are in float64, and how far rounding may move each element.
struct Reference {
  std::vector<ir::Array> outputs;
  std::vector<double> bounds;              // per output, ir::error_bounds
  std::vector<std::vector<double>> slack;  // per output and element; infinite: rounding decides the element
};

// Evaluates in float64, once rounded to the dtypes and `runs` times with noise: each operand that is not exact is
// scaled by random factors of the size of its rounding errors, anew for every reader. What noise moves, a correct
// kernel may move as much: cancellation, floors, comparisons and everything behind them are found without a rule per
// op.
Reference make_reference(const Case& c, int runs, uint64_t seed);

}  // namespace heddle::fuzz
