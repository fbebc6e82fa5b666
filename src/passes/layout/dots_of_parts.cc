#include "passes/layout/dots_of_parts.h"

#include <algorithm>
#include <optional>

#include "ir/builder.h"
#include "ir/rewrite.h"
#include "passes/names.h"
#include "passes/rewrite/dot_side.h"
#include "passes/rewrite/refine.h"
#include "passes/rewrite/view.h"

namespace heddle::passes {
namespace {

using ir::Graph;

constexpr int64_t kFewResults = 4;  // copied elements for each element of the product's result

// A dot, one operand of which is a concatenation or a reshape of one.
struct JoinedOperand {
  size_t side;
  const Node* concat;
  int64_t dim;                // of the operand
  std::optional<size_t> sum;  // the position of `dim` among the contracted dimensions; nullopt: it is a free dimension
};

bool has_input(const Graph& graph, const Node& concat) {
  return std::any_of(concat.inputs.begin(), concat.inputs.end(),
                     [&](ValueId v) { return graph.producer(v).op == Op::kParameter; });
}

class JoinedFinder {
 public:
  explicit JoinedFinder(const Graph& graph)
      : graph_(graph), readers_(ir::users(graph)), is_output_(graph.value_count()) {
    for (const Graph::Port& port : graph.outputs()) is_output_[port.value] = true;
  }

  std::optional<JoinedOperand> find(const Node& dot) const {
    constexpr size_t kMostParts = 4;
    for (const size_t i : {1, 0}) {
      const ValueId operand = dot.inputs[i];
      const bool is_view = graph_.producer(operand).op == Op::kReshape;
      const ValueId v = is_view ? graph_.producer(operand).inputs[0] : operand;
      const Node& concat = graph_.producer(v);
      if (concat.op != Op::kConcat || concat.inputs.size() > kMostParts) continue;
      if (is_needed_otherwise(operand) || is_needed_otherwise(v)) continue;
      if (!has_input(graph_, concat)) continue;  // other parts may be computed where they are to lie
      if (kFewResults * element_count(graph_.shape(dot.outputs[0])) > element_count(graph_.shape(v))) continue;
      const auto dim = dim_of_operand(v, operand, concat.attrs.integer("dim"));
      if (!dim) continue;
      const DotSide side(graph_, dot, i);
      const auto sum = std::find(side.contract.begin(), side.contract.end(), *dim);
      if (sum != side.contract.end()) {
        if (is_packed_weights(graph_, dot.inputs[1 - i])) continue;
        return JoinedOperand{i, &concat, *dim, static_cast<size_t>(sum - side.contract.begin())};
      }
      if (std::find(side.free.begin(), side.free.end(), *dim) != side.free.end())
        return JoinedOperand{i, &concat, *dim, std::nullopt};
    }
    return std::nullopt;
  }

 private:
  bool is_needed_otherwise(ValueId v) const { return is_output_[v] || readers_[v].size() != 1; }

  // The dimension of an operand, a reshaped concatenation `v`, that is the dimension `dim` of `v`.
  std::optional<int64_t> dim_of_operand(ValueId v, ValueId operand, int64_t dim) const {
    const auto split = refine(graph_.shape(v), graph_.shape(operand));
    if (!split) return std::nullopt;
    const Ints& factors = split->from[static_cast<size_t>(dim)];
    const auto same = std::find(split->to.begin(), split->to.end(), factors);
    if (factors.empty() || same == split->to.end()) return std::nullopt;
    return same - split->to.begin();
  }

  const Graph& graph_;
  const std::vector<std::vector<NodeId>> readers_;
  std::vector<bool> is_output_;
};

// The position of the concatenated dimension in the product's result.
int64_t dim_of_result(const Graph& graph, const Node& dot, const JoinedOperand& found) {
  const DotSide left(graph, dot, 0), side(graph, dot, found.side);
  const auto position = std::find(side.free.begin(), side.free.end(), found.dim) - side.free.begin();
  return static_cast<int64_t>(left.batch.size() + (found.side == 1 ? left.free.size() : 0)) + position;
}

ValueId emit_parts(ir::Rewriter& r, const Node& dot, const JoinedOperand& found) {
  const Graph& graph = r.source();
  ir::Builder b(r.target());
  r.also_from(*found.concat);
  b.set_origins(r.origins());
  const size_t other = 1 - found.side;
  std::vector<ValueId> results;
  int64_t begin = 0;
  for (const ValueId part : found.concat->inputs) {
    const int64_t end = begin + graph.shape(part)[static_cast<size_t>(found.concat->attrs.integer("dim"))];
    Shape shape = graph.shape(dot.inputs[found.side]);
    shape[static_cast<size_t>(found.dim)] = end - begin;
    std::vector<ValueId> operands(2);
    operands[found.side] = b.reshape(r(part), shape);
    operands[other] = r(dot.inputs[other]);
    if (found.sum)
      operands[other] = b.slice_dim(operands[other], DotSide(graph, dot, other).contract[*found.sum], begin, end);
    results.push_back(b.emit(Op::kDot, operands, dot.attrs));
    begin = end;
  }
  if (!found.sum) return b.concat(results, dim_of_result(graph, dot, found));
  ValueId sum = results[0];
  for (size_t i = 1; i < results.size(); ++i) sum = b.add(sum, results[i]);
  return sum;
}

}  // namespace

Graph dots_of_parts(const Graph& graph, const PassContext&) {
  const JoinedFinder finder(graph);
  return ir::Rewriter(graph).run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    // Sums of 16 bits would be rounded before they are added.
    if (node.op != Op::kDot || graph.dtype(node.outputs[0]) != DType::kF32) return std::nullopt;
    const auto found = finder.find(node);
    if (!found) return std::nullopt;
    return std::vector<ValueId>{emit_parts(r, node, *found)};
  });
}

}  // namespace heddle::passes
