#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"
#include "ir/reference/array.h"

namespace heddle::ir {

// The allowed difference between a compiled result and the float64 reference, for `heddle verify` and the differential
// fuzz test.
//
// Rounding errors are modelled as a random walk, relative to the magnitude of a tensor. A stored result adds one
// rounding of its dtype. A contraction or sum over n terms adds n roundings of its accumulator (f32; f64 for f64
// operands). A transcendental function adds some units in the last place of f32. Variances add along the longest path.
// An error bound is kSafety standard deviations. This factor covers the largest of millions of errors, and
// cancellation, which the model does not see.
constexpr double kSafety = 10;

// The unit roundoff of a floating type: half the distance from 1 to the next larger number, 2^-24 for f32.
double unit_roundoff(DType dtype);

// The standard deviation of the error that one node adds to a result of type `to`, relative to the magnitude of the
// tensor. `rounded_operands`: the node's operands carry rounding errors, which can change integers computed from them.
double rounding_error(const Graph& graph, const Node& node, DType to, bool rounded_operands);

// Returns an error bound for every value of a graph, indexed by value id. The graph must be the compiled one (after the
// precision pass). A bound of 0 means exact, as for layout changes of inputs and for integer arithmetic. Integers
// computed from rounded floats also have a bound above 0.
std::vector<double> error_bounds(const Graph& graph);

struct Comparison {
  bool ok = true;
  // For floats: the largest |actual - expected| / max(|expected|, scale), where scale is the root mean square of the
  // expected tensor; infinite if only one of the two values is NaN or infinite. For integers: the fraction of elements
  // that differ. If the bound is above 0, up to kFlips of the integers may differ, since rounding can flip a comparison
  // or an argmax.
  double error = 0;
  double bound = 0;
  int64_t worst = -1;  // linear index of the element with the largest error; -1: all are equal
  double expected = 0, actual = 0;
};
constexpr double kFlips = 0.02;

// Compares two arrays of the same type. `slack`, if not empty, is an absolute error per element that is allowed in
// addition to the bound; infinite slack means that the element is ignored. An infinite actual value is accepted if the
// finite expected value exceeds the largest number of the dtype.
Comparison compare(const Array& expected, const Array& actual, double bound, std::span<const double> slack = {});

}  // namespace heddle::ir
