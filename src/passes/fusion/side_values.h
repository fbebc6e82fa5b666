#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "passes/fusion/context.h"

namespace heddle::passes {

// Elementwise nodes that an epilogue can compute beside its result, from values in memory. The gradient of GELU, say,
// multiplies the result of a product by a function of an operand that the forward pass has stored, and computes another
// function of it for the next product.
struct SideValues {
  std::vector<ir::NodeId> nodes;  // those with results first, then the others from the last to the first
  int results = 0;                // values that nodes outside of the epilogue read
};

// Finds the nodes that compute `v` for the epilogue of `anchor`, and those that compute 16-bit results for other
// readers from the same values. `count` is the number of elements of the anchor's result; `inside` tells whether a node
// is in the epilogue. Returns nullopt if v depends on the anchor, if a value would have to be stored in 32 bits, or if
// there are too many nodes.
std::optional<SideValues> find_side_values(const FusionContext& context, ir::ValueId v, ir::NodeId anchor,
                                           int64_t count, const std::function<bool(ir::NodeId)>& inside);

// True if a path leads from `earlier` to `later`, a node after it, as far as a few steps find it.
bool waits_for(const FusionContext& context, ir::NodeId later, ir::NodeId earlier);

}  // namespace heddle::passes
