#include "passes/contraction/align_rows.h"

#include <algorithm>
#include <map>

#include "base/divide.h"
#include "ir/reference/scalar.h"
#include "ir/rewrite.h"
#include "passes/names.h"

namespace heddle::passes {
namespace {

constexpr int64_t kPiece = 16;                     // bytes of a load
constexpr int64_t kSmallCopy = int64_t{16} << 20;  // bytes below which a copy costs little

class AlignedRows {
 public:
  explicit AlignedRows(const ir::Graph& graph) : graph_(graph) {
    for (const Node& node : graph.nodes()) {
      if (!is_plain_product(node)) continue;
      for (const ValueId operand : node.inputs) ++products_[source_of(operand)];
    }
  }

  std::optional<std::vector<ValueId>> visit(ir::Rewriter& r, const Node& node) {
    if (!is_plain_product(node)) return std::nullopt;
    std::vector<ValueId> inputs;
    for (const ValueId operand : node.inputs) {
      inputs.push_back(pays(source_of(operand)) ? aligned(r, operand) : r(operand));
    }
    if (inputs == r(node.inputs)) return std::nullopt;
    return r.target().node(r.target().add(node.op, inputs, node.attrs, node.origins)).outputs;
  }

 private:
  // Products in batches are parts of attention, which keeps their operands on the chip.
  static bool is_plain_product(const Node& node) { return node.op == Op::kDot && node.attrs.ints("lhs_batch").empty(); }

  ValueId source_of(ValueId operand) const {
    while (graph_.producer(operand).op == Op::kTranspose) operand = graph_.producer(operand).inputs[0];
    return operand;
  }

  bool pays(ValueId source) const {
    const ir::TensorType& type = graph_.type(source);
    const auto element = static_cast<int64_t>(size_of(type.dtype));
    if (type.shape.size() < 2 || type.shape.back() * element % kPiece == 0 ||
        element_count(type.shape) * element < kSmallCopy || graph_.constant_of(source) != nullptr) {
      return false;
    }
    return products_.at(source) > 1 || (ir::is_elementwise(graph_.producer(source).op) && !is_softmax(source));
  }

  // Fusion may find the attention of one head there.
  bool is_softmax(ValueId v) const {
    while (graph_.producer(v).op == Op::kCast) v = graph_.producer(v).inputs[0];
    return graph_.producer(v).op == Op::kDiv;
  }

  // The operand as a view of padded rows, which all products share.
  ValueId aligned(ir::Rewriter& r, ValueId operand) {
    const Node& view = graph_.producer(operand);
    if (view.op == Op::kTranspose) {
      return r.target().emit(view.op, {aligned(r, view.inputs[0])}, view.attrs, view.origins);
    }
    const Shape& shape = graph_.shape(operand);
    const Ints none(shape.size(), 0), steps(shape.size(), 1);
    const auto [found, is_new] = padded_.try_emplace(operand, ValueId{});
    if (is_new) {
      Ints high = none;
      const auto pieces = kPiece / static_cast<int64_t>(size_of(graph_.dtype(operand)));
      high.back() = round_up(shape.back(), pieces) - shape.back();
      const ValueId zero = r.target().constant(ir::splat(graph_.dtype(operand), {}, 0));
      found->second = r.target().emit(Op::kPad, {r(operand), zero},
                                      {{"low", none}, {"high", high}, {"mode", std::string("constant")}}, view.origins);
    }
    return r.target().emit(Op::kSlice, {found->second},
                           {{"starts", none}, {"limits", Ints(shape.begin(), shape.end())}, {"strides", steps}},
                           view.origins);
  }

  const ir::Graph& graph_;
  std::map<ValueId, int> products_;    // by operand: how many read it
  std::map<ValueId, ValueId> padded_;  // by operand: its copy in the new graph
};

}  // namespace

ir::Graph align_rows(const ir::Graph& graph, const PassContext&) {
  AlignedRows rows(graph);
  return ir::Rewriter(graph).run([&](ir::Rewriter& r, const Node& node) { return rows.visit(r, node); });
}

}  // namespace heddle::passes
