#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// A copy of each mask for each of the attentions that read it: what meets the result of a product before an
// exponential, as far as it is computed from positions or for every row and column.
ir::Graph clone_masks(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
