#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Folds per-channel constants around a convolution or a dot into its constant weights. A multiplication after it scales
// the weights' output channels (and constants added in between), one before it their input channels. Additions after it
// merge into one. A batch normalisation thus folds into the weights and one bias. Weights of 16 bits keep their type,
// and stay as they are where f16 has no normal numbers for their products. Behind a contraction of 16 bits there may be
// a cast to f32.
ir::Graph fold_batch_norm(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
