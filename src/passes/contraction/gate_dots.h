#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Two products of one value with constant matrices that are combined elementwise (ir/analysis/gated_product.h) become
// one product, with a matrix that interleaves their columns. A product whose two halves are combined is rewritten the
// same way. match_gated_product() finds the result.
ir::Graph gate_dots(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
