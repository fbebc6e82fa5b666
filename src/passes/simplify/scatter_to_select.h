#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Rewrites scatters as selections among loads, which GPU kernels fuse with neighbouring nodes. Applies to scatters
// without a combiner in two cases:
//   - The indices are constant, as in assignments to slices. So the update of each result element is known.
//   - Each row receives one update. The selection compares each element's position with the index of its row.
ir::Graph scatter_to_select(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
