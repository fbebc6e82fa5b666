#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Rewrites dot(x * a, y * b) to dot(x, y) * ab if exponentials of the result follow and a and b are positive constants.
// Exporters scale queries and keys by the root of the scale each, which would be two passes over memory. Sums are
// scaled before they are rounded to 16 bits. For a GPU.
ir::Graph scale_scores(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
