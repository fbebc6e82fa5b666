#pragma once

#include <vector>

#include "ir/rewrite.h"

namespace heddle::passes {

// Neighbouring columns of a product's constant weights (ir/analysis/constant_weights.h), each times a factor. Only
// matrices of f32 may have other factors than 1.
struct WeightColumns {
  ValueId weights;
  int64_t first, count;
  float factor = 1;
};

// Puts columns of weights that can be put together side by side. Columns of a matrix run along dimension `dim`.
ValueId join_columns(ir::Rewriter& r, const ir::Graph& graph, const std::vector<WeightColumns>& parts, size_t dim);

}  // namespace heddle::passes
