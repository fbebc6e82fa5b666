#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Scatters as comparisons, which kernels of a GPU compute beside what is around them: every element of the result looks
// for the updates whose index is its own. That costs elements times updates, so large ones stay as they are. Where the
// indices are constants and nothing is combined, the update of each element is known and only read.
ir::Graph compare_indices(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
