#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Gives each attention that reads a mask its own copy of the mask. Does so only if something else also reads the mask
// or one of the copied nodes. A mask is an operand that is combined with a product's result before an exponential. The
// pass copies the nodes of the mask's computation that depend only on positions (ir::of_positions). It also copies
// cheap ops and layout changes whose result has at least as many elements as the last two dimensions of the mask.
ir::Graph clone_masks(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
