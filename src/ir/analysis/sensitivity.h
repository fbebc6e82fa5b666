#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"
#include "ir/reference/array.h"

namespace heddle::ir {

// The measured effect of rounding errors on the values of a graph, for given inputs.
//
// error_bounds() assumes that no operation magnifies an error. A model with an operation that does (a variance as
// E[x^2] - E[x]^2, a difference of nearly equal numbers) loses digits in any f32 evaluation. measure_sensitivity()
// measures this loss. It evaluates the graph in float64: once exactly, and a few times with a random rounding error at
// each node (rounding_error()). Then it compares the results. For models without such operations, the measured bounds
// are as small as those of error_bounds().
struct Sensitivity {
  // For each value: six times the RMS deviation of the value, relative to the RMS of the value. The bound is capped
  // at kMostForgiven, or at half the value's error bound if that is larger (16-bit types, deep models).
  std::vector<double> bounds;
  // For each output, an absolute error per element, for compare()'s `slack`. For floats, let D be the RMS deviation
  // of the tensor and R the RMS of its exact elements. The slack of an element is 6 * max(D, deviation of the
  // element). If 6 * D > cap * R, where `cap` is the cap of `bounds`, the slack is at most cap * max(|element|, R).
  // So every accepted result resembles the reference. For integers, the slack is the largest change of the element in
  // the noisy evaluations.
  std::vector<std::vector<double>> slack;
};
constexpr double kMostForgiven = 0.1;

// `graph` is the compiled graph, as for error_bounds(). Takes the time and memory of about four evaluations.
Sensitivity measure_sensitivity(const Graph& graph, const std::vector<Array>& inputs, uint64_t seed);

}  // namespace heddle::ir
