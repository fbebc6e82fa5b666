#include "passes/contraction/swap_dots.h"

#include <algorithm>
#include <numeric>

#include "ir/builder.h"
#include "ir/rewrite.h"
#include "passes/rewrite/dot_side.h"

namespace heddle::passes {
namespace {

using ir::Graph;
using ir::Ints;
using ir::Op;

Shape without_ones(Shape shape) {
  std::erase(shape, 1);
  return shape;
}

size_t count_without_ones(const DotSide& side, const Ints& dims) {
  return static_cast<size_t>(
      std::count_if(dims.begin(), dims.end(), [&](int64_t d) { return side.shape[static_cast<size_t>(d)] != 1; }));
}

// A product, and the transpose that reads it.
struct Turned {
  const Node* dot;
  std::vector<DType> casts;  // between the two, from the product on
};

class TurnedFinder {
 public:
  explicit TurnedFinder(const Graph& graph)
      : graph_(graph), readers_(ir::users(graph)), is_output_(graph.value_count(), false) {
    for (const Graph::Port& port : graph.outputs()) is_output_[port.value] = true;
  }

  std::optional<Turned> at(const Node& transpose) const {
    if (transpose.op != Op::kTranspose) return std::nullopt;
    Turned found{nullptr, {}};
    ValueId v = transpose.inputs[0];
    for (;; v = graph_.producer(v).inputs[0]) {
      if (is_output_[v] || readers_[v].size() != 1) return std::nullopt;
      const Node& node = graph_.producer(v);
      if (node.op == Op::kCast) {
        found.casts.insert(found.casts.begin(), node.attrs.dtype("to"));
      } else if (node.op != Op::kReshape) {
        found.dot = &node;
        break;
      }
    }
    if (!may_swap(*found.dot) || !exchanges(transpose, *found.dot)) return std::nullopt;
    return found;
  }

 private:
  bool may_swap(const Node& node) const {
    return node.op == Op::kDot && std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
             return is_float(graph_.dtype(v)) && graph_.constant_of(v) == nullptr;
           });
  }

  // Whether the transpose puts the columns of the product in front of its rows and moves nothing else. Reshapes between
  // them may add and drop dimensions of extent 1.
  bool exchanges(const Node& transpose, const Node& dot) const {
    const Shape& from = graph_.shape(transpose.inputs[0]);
    if (without_ones(from) != without_ones(graph_.shape(dot.outputs[0]))) return false;
    const DotSide left(graph_, dot, 0), right(graph_, dot, 1);
    const size_t batches = count_without_ones(left, left.batch), rows = count_without_ones(left, left.free),
                 columns = count_without_ones(right, right.free);
    std::vector<size_t> position(from.size());  // of a dimension, not counting those of extent 1
    for (size_t d = 0, next = 0; d < from.size(); ++d) position[d] = from[d] == 1 ? 0 : next++;
    std::vector<size_t> order, wanted(batches + rows + columns);
    for (const int64_t d : transpose.attrs.ints("perm")) {
      if (from[static_cast<size_t>(d)] != 1) order.push_back(position[static_cast<size_t>(d)]);
    }
    std::iota(wanted.begin(), wanted.end(), size_t{0});
    const auto begin = wanted.begin() + static_cast<int64_t>(batches);
    std::rotate(begin, begin + static_cast<int64_t>(rows), wanted.end());
    return rows > 0 && columns > 0 && order == wanted;
  }

  const Graph& graph_;
  const std::vector<std::vector<NodeId>> readers_;
  std::vector<bool> is_output_;
};

ValueId emit_swapped(ir::Rewriter& r, const Node& transpose, const Turned& turned) {
  const Node& dot = *turned.dot;
  r.also_from(dot);
  ir::Attrs attrs = dot.attrs;
  for (const char* dims : {"batch", "contract"}) {
    const std::string left = fmt::format("lhs_{}", dims), right = fmt::format("rhs_{}", dims);
    attrs.set(left, dot.attrs.ints(right));
    attrs.set(right, dot.attrs.ints(left));
  }
  ir::Builder b(r.target());
  b.set_origins(r.origins());
  ValueId v = b.emit(Op::kDot, {r(dot.inputs[1]), r(dot.inputs[0])}, std::move(attrs));
  for (const DType to : turned.casts) v = b.cast(v, to);
  return b.reshape(v, r.source().shape(transpose.outputs[0]));
}

}  // namespace

ir::Graph swap_dots(const Graph& graph, const PassContext&) {
  const TurnedFinder finder(graph);
  return ir::Rewriter(graph).run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    const auto turned = finder.at(node);
    if (!turned) return std::nullopt;
    return std::vector<ValueId>{emit_swapped(r, node, *turned)};
  });
}

}  // namespace heddle::passes
