#pragma once

#include <vector>

#include "ir/rewrite.h"

namespace heddle::passes {

// Neighbouring columns of a product's constant weights (ir/analysis/constant_weights.h), times a factor. The factor
// must be 1 unless the weights are a matrix of f32.
struct WeightColumns {
  ValueId weights;
  int64_t first, count;
  float factor = 1;
};

// Joins columns of weights for which constant_weights() returns equal texts. Columns of a matrix are indices of
// dimension `dim`.
ValueId join_columns(ir::Rewriter& r, const ir::Graph& graph, const std::vector<WeightColumns>& parts, size_t dim);

}  // namespace heddle::passes
