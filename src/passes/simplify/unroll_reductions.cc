#include "passes/simplify/unroll_reductions.h"

#include <algorithm>
#include <vector>

#include "ir/builder.h"
#include "ir/ops/combine.h"
#include "ir/rewrite.h"

namespace heddle::passes {
namespace {

constexpr int64_t kMostUnrolled = 4;

// A few terms along one dimension, which lie apart in memory.
bool is_short(const ir::Graph& graph, const Node& node) {
  if (node.op != Op::kReduce || !is_float(graph.dtype(node.inputs[0]))) return false;
  const Shape& shape = graph.shape(node.inputs[0]);
  const ir::Ints& dims = node.attrs.ints("dims");
  if (dims.size() != 1 || dims[0] + 1 == static_cast<int64_t>(shape.size())) return false;
  const int64_t terms = shape[static_cast<size_t>(dims[0])];
  return terms >= 2 && terms <= kMostUnrolled;
}

// Whether a reduction reads the result, through nodes of an element each.
bool is_reduced_again(const ir::Graph& graph, const std::vector<std::vector<ir::NodeId>>& users, ValueId value) {
  constexpr size_t kMostSteps = 8;
  std::vector<ValueId> open = {value};
  for (size_t i = 0; i < open.size() && i < kMostSteps; ++i) {
    for (const ir::NodeId user : users[open[i]]) {
      const Node& node = graph.node(user);
      if (node.op == Op::kReduce) return true;
      if (ir::is_elementwise(node.op) || node.op == Op::kReshape) open.push_back(node.outputs[0]);
    }
  }
  return false;
}

ValueId written_out(ir::Rewriter& r, const Node& node) {
  const ir::Graph& graph = r.source();
  ir::Builder b(r.target());
  b.set_origins(r.origins());
  const auto dim = static_cast<size_t>(node.attrs.ints("dims")[0]);
  const Shape shape = graph.shape(node.inputs[0]);
  const ir::TensorType& result = graph.type(node.outputs[0]);
  // Sums of narrow floats are computed in f32, as reductions are, and rounded once.
  const DType computed = size_of(result.dtype) < 4 ? DType::kF32 : result.dtype;
  std::optional<ValueId> all;
  for (int64_t i = 0; i < shape[dim]; ++i) {
    const ValueId term = b.reshape(b.slice_dim(r(node.inputs[0]), static_cast<int64_t>(dim), i, i + 1), result.shape);
    const ValueId wide = b.cast(term, computed);
    all = all ? b.binary(ir::combined_by(node.attrs.text("kind")), *all, wide) : wide;
  }
  return b.cast(*all, result.dtype);
}

}  // namespace

ir::Graph unroll_reductions(const ir::Graph& graph, const PassContext&) {
  const auto users = ir::users(graph);
  return ir::Rewriter(graph).run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    if (!is_short(graph, node) || !is_reduced_again(graph, users, node.outputs[0])) return std::nullopt;
    return std::vector{written_out(r, node)};
  });
}

}  // namespace heddle::passes
