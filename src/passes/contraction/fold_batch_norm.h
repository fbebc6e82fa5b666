#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Folds per-channel constants before or after a convolution or dot into its constant weights. A multiplication after
// the contraction scales the output channels of the weights. It also scales constants that are added between the
// contraction and the multiplication. A multiplication before the contraction scales the input channels of the weights.
// Several additions after the contraction become one. A batch normalisation thus becomes a change of the weights and
// one bias. 16-bit weights keep their type. They are not changed if the scaled weights are too large or too small for
// normal f16 numbers. A 16-bit contraction may be followed by a cast to f32.
ir::Graph fold_batch_norm(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
