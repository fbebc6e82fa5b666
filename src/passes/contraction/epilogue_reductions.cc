#include "passes/contraction/epilogue_reductions.h"

#include <algorithm>

#include "ir/analysis/partial_reduction.h"
#include "ir/builder.h"
#include "ir/rewrite.h"
#include "passes/rewrite/view.h"

namespace heddle::passes {
namespace {

// What a smaller product costs to be read again is less than its kernel loses without parts of k.
constexpr int64_t kLeastElements = 1 << 20;

// A reduction of what is computed from a product element by element.
struct Reduction {
  ir::ResultMatrix matrix;
  bool rows = false;  // are reduced, else columns
};

class ReductionFinder {
 public:
  explicit ReductionFinder(const ir::Graph& graph) : graph_(graph), readers_(ir::users(graph)) {}

  std::optional<Reduction> at(const Node& node) const {
    if (node.op != Op::kReduce || node.attrs.ints("dims").empty() || !is_number(node.attrs.text("kind"))) {
      return std::nullopt;
    }
    const DType dtype = graph_.dtype(node.inputs[0]);
    if (dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kBF16) return std::nullopt;
    const auto product = product_of(node.inputs[0]);
    if (!product || reads_packed_weights(graph_.node(*product))) return std::nullopt;
    const auto matrix = ir::result_matrix(graph_, graph_.node(*product));
    if (!matrix || element_count(graph_.shape(node.inputs[0])) < kLeastElements) return std::nullopt;
    Reduction found{*matrix};
    if (!is_side(node, *matrix, found.rows) || meets_product(node, *product)) return std::nullopt;
    return found;
  }

 private:
  static bool is_number(std::string_view kind) { return kind != "any" && kind != "all"; }

  // Kernels that read weights of few bits cannot reduce whole rows.
  bool reads_packed_weights(const Node& product) const {
    return std::any_of(product.inputs.begin(), product.inputs.end(),
                       [&](ValueId v) { return is_packed_weights(graph_, v); });
  }

  // The first product from which a value is computed element by element.
  std::optional<NodeId> product_of(ValueId value) const {
    constexpr int kMostSteps = 64;
    std::vector<ValueId> open = {value};
    for (int step = 0; step < kMostSteps && !open.empty(); ++step) {
      const NodeId id = graph_.value(open.back()).producer;
      const Node& node = graph_.node(id);
      if (ir::is_anchor(node.op)) return id;
      open.pop_back();
      if (ir::is_elementwise(node.op)) open.insert(open.end(), node.inputs.rbegin(), node.inputs.rend());
    }
    return std::nullopt;
  }

  // Whether the dimensions that go are all columns, or all rows (with the batches, where there are some), in whole
  // pieces of what a kernel reduces.
  bool is_side(const Node& node, const ir::ResultMatrix& matrix, bool& rows) const {
    const Shape& shape = graph_.shape(node.inputs[0]);
    const auto& dims = node.attrs.ints("dims");
    const auto first = static_cast<size_t>(dims.front()), last = static_cast<size_t>(dims.back());
    if (last - first + 1 != dims.size()) return false;
    int64_t reduced = 1;
    for (size_t d = first; d <= last; ++d) reduced *= shape[d];
    rows = first == 0;
    if (rows) {
      return reduced == matrix.batches * matrix.rows && matrix.rows % ir::kPartialRows == 0 &&
             reduced > ir::kPartialRows;
    }
    return last + 1 == shape.size() && reduced == matrix.columns && reduced % ir::kPartialColumns == 0 &&
           reduced > ir::kPartialColumns;
  }

  // Whether what depends on the reduction reads something else that depends on the product: then it is one region with
  // what reads the product.
  bool meets_product(const Node& reduce, NodeId product) const {
    const std::vector<bool> after = depends_on(reduce.outputs[0]);
    const std::vector<bool> beside = depends_on(graph_.node(product).outputs[0]);
    for (NodeId id = 0; id < graph_.nodes().size(); ++id) {
      if (!after[id]) continue;
      for (const ValueId v : graph_.node(id).inputs) {
        const NodeId from = graph_.value(v).producer;
        if (from == product || (beside[from] && !after[from] && v != reduce.outputs[0])) return true;
      }
    }
    return false;
  }
  // Nodes that read a value, or what is made from it.
  std::vector<bool> depends_on(ValueId value) const {
    std::vector<bool> result(graph_.nodes().size());
    std::vector<ValueId> open = {value};
    while (!open.empty()) {
      const ValueId at = open.back();
      open.pop_back();
      for (const NodeId reader : readers_[at]) {
        if (result[reader]) continue;
        result[reader] = true;
        const Node& node = graph_.node(reader);
        open.insert(open.end(), node.outputs.begin(), node.outputs.end());
      }
    }
    return result;
  }

  const ir::Graph& graph_;
  const std::vector<std::vector<NodeId>> readers_;
};

ValueId in_two_steps(ir::Rewriter& r, const Node& node, const Reduction& reduction) {
  ir::Builder b(r.target());
  b.set_origins(r.origins());
  const auto& kind = node.attrs.text("kind");
  const ValueId x = r(node.inputs)[0];
  const ir::ResultMatrix& m = reduction.matrix;
  const int64_t rows = m.batches * m.rows;
  const Shape split = reduction.rows ? Shape{rows / ir::kPartialRows, ir::kPartialRows, m.columns}
                                     : Shape{rows, m.columns / ir::kPartialColumns, ir::kPartialColumns};
  const ValueId parts = b.reduce(kind, b.cast(b.reshape(x, split), DType::kF32), {reduction.rows ? 1 : 2});
  const ValueId whole = b.reduce(kind, parts, {reduction.rows ? 0 : 1});
  const ValueId source = node.outputs[0];
  return b.cast(b.reshape(whole, r.source().shape(source)), r.source().dtype(source));
}

}  // namespace

ir::Graph epilogue_reductions(const ir::Graph& graph, const PassContext&) {
  const ReductionFinder finder(graph);
  return ir::Rewriter(graph).run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    const auto found = finder.at(node);
    if (!found) return std::nullopt;
    return std::vector<ValueId>{in_two_steps(r, node, *found)};
  });
}

}  // namespace heddle::passes
