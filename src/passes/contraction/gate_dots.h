#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Two products of one value with constant matrices that meet element by element (ir/analysis/gated_product.h) become
// one product with a matrix whose columns are theirs in turns; so does a product whose halves meet. What follows is
// what match_gated_product() finds.
ir::Graph gate_dots(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
