#pragma once

#include <cstdint>
#include <optional>

#include "ir/graph.h"

namespace heddle::ir {

// The result of a contraction as matrices: element (batch, row, column) lies at (batch * rows + row) * columns +
// column.
struct ResultMatrix {
  int64_t batches = 1, rows = 1, columns = 1;
};
// nullopt unless `node` is a dot, or a convolution with channels last and one group, with f32 sums and a non-empty
// product.
std::optional<ResultMatrix> result_matrix(const Graph& graph, const Node& node);

// Reductions of kPartialColumns neighbours in a row, or of kPartialRows neighbours in a column, of a contraction's
// result. A GPU kernel can compute them from the sums in its registers.
inline constexpr int64_t kPartialColumns = 32, kPartialRows = 16;

// The nodes of such a reduction: a reshape makes the neighbours a dimension, a cast to f32 follows if they have 16
// bits, and a reduce removes that dimension.
struct PartialReduction {
  ValueId value = 0;   // the reduced value, in the order of the contraction's result
  bool rows = false;   // reduces neighbours in a column, else in a row
  NodeId reshape = 0;  // reads `value`
  std::optional<NodeId> cast = {};
};
// nullopt if the node is not such a reduction of a result with the shape `matrix`.
std::optional<PartialReduction> match_partial_reduction(const Graph& graph, NodeId reduce, const ResultMatrix& matrix);

}  // namespace heddle::ir
