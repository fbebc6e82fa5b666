#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"
#include "ir/reference/array.h"

namespace heddle::ir {

// The allowed distance of a compiled result from the float64 reference, for `heddle verify` and the differential fuzz
// test.
//
// The model is a random walk of rounding errors, relative to the magnitude of a tensor. A stored result adds one
// rounding of its dtype, a contraction or sum over n terms n roundings of its accumulator (f32, or f64 for f64), a
// transcendental function some units in the last place of f32. Variances add along the longest path. A bound is kSafety
// standard deviations, for the largest of millions of errors and for the cancellation that the model does not see.
constexpr double kSafety = 10;

// Signs and roundings to integers, whose results are exact.
bool is_exact_unary(Op op);

// Half the distance from 1 to the next number of a floating type: 2^-24 for f32.
double unit_roundoff(DType dtype);

// The standard deviation of the error that one node adds to a result of type `to`, relative to the magnitude of the
// tensor. `rounded_operands`: the node reads values that carry errors, which can change integers computed from them.
double rounding_error(const Graph& graph, const Node& node, DType to, bool rounded_operands);

// An error bound for every value of a graph, which must be the compiled graph (after the precision pass). 0: exact
// (layout changes of inputs, integer arithmetic). Integers that come from rounded floats get a bound above 0 too.
std::vector<double> error_bounds(const Graph& graph);

struct Comparison {
  bool ok = true;
  // Floats: the largest |actual - expected| / max(|expected|, scale), where scale is the root mean square of the
  // expected tensor; infinite if one is NaN or infinite and the other is not. Integers: the share of elements that
  // differ. It may be up to kFlips if the bound is above 0, since rounding can flip a comparison or an argmax.
  double error = 0;
  double bound = 0;
  int64_t worst = -1;  // linear index of the largest error; -1: all equal
  double expected = 0, actual = 0;
};
constexpr double kFlips = 0.02;

// Both arrays have the same type. `slack`, if given, is an absolute error per element that is allowed in addition to
// the bound (infinite: the element is ignored). An infinite actual value is accepted if the finite expected value
// exceeds the largest number of the dtype.
Comparison compare(const Array& expected, const Array& actual, double bound, std::span<const double> slack = {});

}  // namespace heddle::ir
