#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Rewrites convolutions of dilated images (lhs_dilations) as dense convolutions. Transposed convolutions and gradients
// of strided convolutions are of this kind. Output elements whose distance is a multiple of the dilation use the same
// filter taps; together they form a phase. In each dimension, there are two ways to compute the phases. Either all
// phases become channels of one convolution, and filters of phases with fewer taps are padded with zeros. Or each phase
// becomes a separate convolution.
ir::Graph conv_phases(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
