#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"
#include "ir/reference/array.h"

namespace heddle::ir {

// How far rounding moves the results of a graph on given inputs, measured.
//
// error_bounds() assumes that no operation magnifies an error. Models that do (a variance as E[x^2] - E[x]^2, a
// difference of nearly equal numbers) lose digits in any f32 evaluation; this finds how many: the graph is evaluated
// in float64 once as it is and a few times with each node's own rounding error (rounding_error()) put in at random,
// and the results are compared. On models that magnify nothing the outcome is as small as error_bounds().
struct Sensitivity {
  // Per value: root mean square of its deviations over that of the value, times six; never above the most that
  // is forgiven: kMostForgiven, or half the value's error bound where that is more (types of 16 bits, deep models).
  std::vector<double> bounds;
  // Per output and element: an absolute error for compare()'s `slack`. Floats: six times the larger of the
  // element's own deviation and the root mean square over the tensor; where that root mean square is above what is
  // forgiven, at most this part of the element or of the tensor's root mean square, so that nothing is accepted that
  // does not resemble the reference. Integers: by how much noise moved the element.
  std::vector<std::vector<double>> slack;
};
constexpr double kMostForgiven = 0.1;

// `graph` is the one that was compiled, as for error_bounds(). Costs about four evaluations, and as many times the
// memory of one.
Sensitivity measure_sensitivity(const Graph& graph, const std::vector<Array>& inputs, uint64_t seed);

}  // namespace heddle::ir
