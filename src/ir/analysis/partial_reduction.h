#pragma once

#include <cstdint>
#include <optional>

#include "ir/graph.h"

namespace heddle::ir {

// The result of a contraction as a batch of row-major matrices. The offset of element (batch, row, column) is (batch *
// rows + row) * columns + column.
struct ResultMatrix {
  int64_t batches = 1, rows = 1, columns = 1;
};
// The result of `node` as matrices. nullopt unless `node` is a dot, or a convolution with channels last and one group.
// The product must be non-empty and accumulated in f32.
std::optional<ResultMatrix> result_matrix(const Graph& graph, const Node& node);

// A partial reduction combines kPartialColumns neighbours in a row, or kPartialRows neighbours in a column, of a
// contraction's result. A GPU kernel can compute it from the accumulators in its registers.
inline constexpr int64_t kPartialColumns = 32, kPartialRows = 16;

// The nodes of a partial reduction. A reshape splits a row or column into groups of neighbours; a new dimension runs
// over the elements of a group. If the values have 16 bits, a cast to f32 follows. A reduce then removes the new
// dimension.
struct PartialReduction {
  ValueId value = 0;   // the reduced value, in the order of the contraction's result
  bool rows = false;   // true: reduces neighbours in a column; false: in a row
  NodeId reshape = 0;  // reads `value`
  std::optional<NodeId> cast = {};
};
// Matches `reduce` as a partial reduction of a result with the shape `matrix`. nullopt if it is none.
std::optional<PartialReduction> match_partial_reduction(const Graph& graph, NodeId reduce, const ResultMatrix& matrix);

}  // namespace heddle::ir
