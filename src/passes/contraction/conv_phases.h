#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Convolutions of spread images (lhs_dilations: transposed convolutions, gradients of strided ones) as dense ones.
// Results whose places differ by the spread see the same taps of the filters: they are a phase. Either all phases
// become channels of one convolution, whose filters get zeros where phases have fewer taps than others, or each is a
// convolution of its own.
ir::Graph conv_phases(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
