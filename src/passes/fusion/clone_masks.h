#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Copies each mask for every attention that reads it. A mask is an operand that is combined with a product's result
// before an exponential. Copied are the nodes that compute it from positions or for every row and column.
ir::Graph clone_masks(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
