#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Folds per-channel constants around a convolution or a dot into its constant f32 weights. A multiplication after it
// scales the weights' output channels (and constants added in between), one before it their input channels. Additions
// after it merge into one. A batch normalisation thus folds into the weights and one bias.
ir::Graph fold_batch_norm(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
