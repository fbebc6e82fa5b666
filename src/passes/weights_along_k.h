#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Constant matrices of products for tensor cores with the summed dimension innermost, as stored rows: tensor cores of a
// GPU take larger tiles of them, and of operands that are not of 16 bits nothing else. What would lose rows that begin
// at multiples of 16 bytes by it stays as it is.
ir::Graph weights_along_k(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
