#include "ir/analysis/partial_reduction.h"

#include <algorithm>

namespace heddle::ir {
namespace {

int64_t product(const Shape& shape, size_t first, size_t last) {
  int64_t all = 1;
  for (size_t d = first; d < last; ++d) all *= shape[d];
  return all;
}

// Products of integers and of f64 are summed in types of their own, which are not reduced in fragments.
bool is_summed_in_f32(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

}  // namespace

std::optional<ResultMatrix> result_matrix(const Graph& graph, const Node& node) {
  if (node.op != Op::kDot && node.op != Op::kConv) return std::nullopt;
  if (!is_summed_in_f32(graph.dtype(node.outputs[0]))) return std::nullopt;
  const Shape& result = graph.shape(node.outputs[0]);
  if (element_count(result) == 0 || element_count(graph.shape(node.inputs[1])) == 0) return std::nullopt;
  if (node.op == Op::kConv) {
    if (node.attrs.text("layout") != "nhwc" || node.attrs.integer("groups") != 1) return std::nullopt;
    return ResultMatrix{1, product(result, 0, result.size() - 1), result.back()};
  }
  const size_t batches = node.attrs.ints("lhs_batch").size();
  const size_t rows = graph.shape(node.inputs[0]).size() - node.attrs.ints("lhs_contract").size();  // with the batches
  return ResultMatrix{product(result, 0, batches), product(result, batches, rows),
                      product(result, rows, result.size())};
}

std::optional<PartialReduction> match_partial_reduction(const Graph& graph, NodeId id, const ResultMatrix& matrix) {
  const Node& reduce = graph.node(id);
  if (reduce.op != Op::kReduce || reduce.attrs.ints("dims").size() != 1) return std::nullopt;
  if (graph.dtype(reduce.outputs[0]) != DType::kF32) return std::nullopt;
  PartialReduction found;
  NodeId above = graph.value(reduce.inputs[0]).producer;
  if (graph.node(above).op == Op::kCast) {
    found.cast = above;
    above = graph.value(graph.node(above).inputs[0]).producer;
  }
  if (graph.node(above).op != Op::kReshape) return std::nullopt;
  found.reshape = above, found.value = graph.node(above).inputs[0];
  if (!is_summed_in_f32(graph.dtype(found.value))) return std::nullopt;
  const Shape& split = graph.shape(graph.node(above).outputs[0]);
  const auto dim = static_cast<size_t>(reduce.attrs.ints("dims")[0]);
  const int64_t inner = product(split, dim + 1, split.size());
  if (element_count(split) != matrix.batches * matrix.rows * matrix.columns) return std::nullopt;
  found.rows = split[dim] == kPartialRows && inner == matrix.columns;
  const bool columns = split[dim] == kPartialColumns && inner == 1;
  const bool whole = found.rows ? matrix.rows % kPartialRows == 0 : matrix.columns % kPartialColumns == 0;
  if (!(found.rows || columns) || !whole) return std::nullopt;
  return found;
}

}  // namespace heddle::ir
