#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Rewrites scatters with constant indices and no combiner, which exporters write for assignments to slices. The update
// for each element of the result is known, so a scatter is a selection among loads, which GPU kernels fuse with the
// nodes around it. So are scatters of one update a row, which compare each element's position with its row's index.
ir::Graph scatter_to_select(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
