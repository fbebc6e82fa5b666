#pragma once

#include <string>

#include "node_case.h"

namespace heddle::node_tests {

// The relative and absolute tolerance of ONNX's own runner, the absolute one in units of the largest element (a sum of
// large terms that cancel has the rounding of the terms). Integers, bool, text and types of 8 bits or fewer must be
// equal.
constexpr double kRelative = 1e-3;
constexpr double kAbsolute = 1e-7;

// Empty when `given` is what the test expects, else the first difference. Without `values` only types and shapes count.
std::string difference(const TestValue& given, const TestValue& expected, bool values);

}  // namespace heddle::node_tests
