#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Merges two products of the same value with constant matrices, if their results are combined elementwise
// (ir/analysis/gated_product.h). The merged product's matrix interleaves the columns of the two matrices. If the two
// halves of a single product's result are combined elementwise, the columns of its matrix are interleaved in the same
// way. match_gated_product() recognises such products.
ir::Graph gate_dots(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
