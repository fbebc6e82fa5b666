#pragma once

#include "ir/graph.h"

namespace heddle::ir {

// The signs that the elements of a value can have. Any element may also be NaN.
enum class Sign : uint8_t {
  kAny,
  kNotNegative,  // zero, perhaps -0, or above
  kNoSignBit,    // +0 or above
};

// Inspects only the last few nodes that compute the value.
Sign sign_of(const Graph& graph, ValueId value);

}  // namespace heddle::ir
