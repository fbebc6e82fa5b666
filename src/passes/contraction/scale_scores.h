#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// dot(x * a, y * b) becomes dot(x, y) * ab where exponentials of the result follow and a and b are positive constants:
// exporters give queries and keys the root of the scale each, which would be two passes over memory. Sums are not
// rounded to 16 bits before they are scaled. For a GPU.
ir::Graph scale_scores(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
