#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"
#include "ir/reference/array.h"

namespace heddle::ir {

// How far rounding moves the results of a graph on given inputs, as measured.
//
// error_bounds() assumes that no operation magnifies an error. Models that do (a variance as E[x^2] - E[x]^2, a
// difference of nearly equal numbers) lose digits in any f32 evaluation. This measures the loss: it evaluates the graph
// in float64, once as it is and a few times with a random rounding error at each node (rounding_error()), and compares
// the results. On models that magnify nothing the outcome is as small as error_bounds().
struct Sensitivity {
  // Per value: six times the root mean square of its deviations over that of the value. The most that is forgiven caps
  // it: kMostForgiven, or half the value's error bound if that is larger (types of 16 bits, deep models).
  std::vector<double> bounds;
  // Per output and element: an absolute error for compare()'s `slack`. Floats: six times the larger of the element's
  // own deviation and the root mean square deviation of the tensor. If six times the latter is more than is forgiven,
  // the slack is at most the forgiven part of the element or of the tensor's root mean square, whichever is larger. So
  // every accepted result resembles the reference. Integers: the most that noise moved the element.
  std::vector<std::vector<double>> slack;
};
constexpr double kMostForgiven = 0.1;

// `graph` is the one that was compiled, as for error_bounds(). Costs about four evaluations and the memory of four.
Sensitivity measure_sensitivity(const Graph& graph, const std::vector<Array>& inputs, uint64_t seed);

}  // namespace heddle::ir
