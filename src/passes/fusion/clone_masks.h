#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Gives each attention that reads a mask its own copy of the mask. A mask is an operand that is combined with a
// product's result before an exponential. The pass copies those nodes of the mask's computation that depend on
// positions, or that compute at least one element for every row and column.
ir::Graph clone_masks(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
