#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Rewrites scatters with constant indices and no combiner, which exporters write for assignments to slices. The update
// for each element of the result is known, so a scatter is a selection among loads, which GPU kernels fuse with the
// nodes around it.
ir::Graph scatter_to_select(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
