#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Merges two products of the same value with constant matrices, if their results are combined elementwise
// (ir/analysis/gated_product.h). The merged product's matrix interleaves the columns of the two matrices. A product
// whose two halves are combined elementwise is rewritten in the same way. match_gated_product() recognises the merged
// product.
ir::Graph gate_dots(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
