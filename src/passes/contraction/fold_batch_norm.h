#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Folds constants per channel around a convolution or a dot with constant f32 weights: a product behind it scales the
// weights' output channels (and the constants that were added in between), a product in front of it their input
// channels; sums behind it join into one. A batch normalisation disappears so, into the weights and one bias.
ir::Graph fold_batch_norm(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
