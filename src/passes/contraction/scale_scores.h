#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Rewrites dot(x * a, y * b) to dot(x, y) * (a * b) if a and b are positive constants and the result feeds
// exponentials. Exporters of attention multiply both queries and keys by the square root of the scale, which would cost
// two passes over memory. The product is scaled before it is rounded to 16 bits. GPU only.
ir::Graph scale_scores(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
