#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Rewrites convolutions of dilated images (lhs_dilations: transposed convolutions, gradients of strided ones) as dense
// ones. Results that lie a dilation apart see the same filter taps and form a phase. In each dimension, either all
// phases become channels of one convolution, with zeros in the filters of phases that have fewer taps, or each phase
// becomes a separate convolution.
ir::Graph conv_phases(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
