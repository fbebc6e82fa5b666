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
// nullopt where `node` is no dot or convolution with channels last, has several groups of channels or sums that are not
// f32, or nothing is multiplied.
std::optional<ResultMatrix> result_matrix(const Graph& graph, const Node& node);

// A reduction of so many neighbours of a row, or of a column, of a contraction's result: what a GPU's kernel can do
// with the sums that it has in registers.
inline constexpr int64_t kPartialColumns = 32, kPartialRows = 16;

// As nodes: a reshape makes the neighbours a dimension; where they are 16 bits wide a cast to f32 follows; a reduce
// takes that dimension away.
struct PartialReduction {
  ValueId value = 0;   // what is reduced, in the order of the contraction's result
  bool rows = false;   // neighbours of a column, else of a row
  NodeId reshape = 0;  // reads `value`
  std::optional<NodeId> cast = {};
};
// nullopt where the node is no such reduction of a result like `matrix`.
std::optional<PartialReduction> match_partial_reduction(const Graph& graph, NodeId reduce, const ResultMatrix& matrix);

}  // namespace heddle::ir
