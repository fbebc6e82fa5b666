#include "passes/contraction/scale_scores.h"

#include <cmath>
#include <set>

#include "ir/builder.h"
#include "ir/reference/scalar.h"
#include "ir/rewrite.h"

namespace heddle::passes {
namespace {

// An operand of a product without the constant factors above it.
struct Unscaled {
  ValueId source = 0;              // what is left of it
  std::vector<const Node*> views;  // from the source to the operand
  double factor = 1;
};

class ScaleFinder {
 public:
  explicit ScaleFinder(const ir::Graph& graph) : graph_(graph), readers_(ir::users(graph)) {}

  // nullopt where no factor is positive and constant.
  std::optional<Unscaled> unscaled(ValueId operand) const {
    Unscaled result{operand, {}, 1};
    size_t views = 0;  // of those below the last factor
    std::vector<const Node*> above;
    bool found = false;
    for (ValueId v = operand;;) {
      const Node& node = graph_.producer(v);
      if (node.op == Op::kReshape || node.op == Op::kTranspose || node.op == Op::kBroadcast) {
        above.insert(above.begin(), &node);
        v = node.inputs[0];
        continue;
      }
      if (node.op != Op::kMul && node.op != Op::kDiv) break;
      std::optional<double> factor = constant(node.inputs[1]);
      v = node.inputs[0];
      if (!factor && node.op == Op::kMul) factor = constant(node.inputs[0]), v = node.inputs[1];
      if (!factor || !(*factor > 0) || !std::isfinite(*factor)) break;
      result.factor = node.op == Op::kMul ? result.factor * *factor : result.factor / *factor;
      result.source = v, views = above.size(), found = true;
    }
    if (!found || !(result.factor > 0) || !std::isfinite(result.factor)) return std::nullopt;
    result.views.assign(above.end() - static_cast<int64_t>(views), above.end());
    return result;
  }

  // Whether exponentials are what comes of a value, element by element.
  bool leads_to_exp(ValueId value) const {
    constexpr size_t kMostNodes = 64;
    std::set<NodeId> seen;
    std::vector<ValueId> open{value};
    while (!open.empty() && seen.size() < kMostNodes) {
      const ValueId v = open.back();
      open.pop_back();
      for (const NodeId id : readers_[v]) {
        const Node& node = graph_.node(id);
        if (node.op == Op::kExp) return true;
        const bool goes_on = ir::is_elementwise(node.op) || ir::class_of(node.op) == ir::OpClass::kLayout;
        if (goes_on && seen.insert(id).second) open.push_back(node.outputs[0]);
      }
    }
    return false;
  }

 private:
  std::optional<double> constant(ValueId v) const {
    while (graph_.producer(v).op == Op::kBroadcast || graph_.producer(v).op == Op::kReshape) {
      v = graph_.producer(v).inputs[0];
    }
    const Tensor* value = graph_.constant_of(v);
    return value == nullptr ? std::nullopt : ir::splat_of(*value);
  }

  const ir::Graph& graph_;
  const std::vector<std::vector<NodeId>> readers_;
};

bool is_narrow(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16;
}

}  // namespace

ir::Graph scale_scores(const ir::Graph& graph, const PassContext&) {
  const ScaleFinder finder(graph);
  return ir::Rewriter(graph).run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    if (node.op != Op::kDot) return std::nullopt;
    // Of attention, which may have one head; what has a weight is another layer.
    const bool weighs = graph.constant_of(node.inputs[0]) != nullptr || graph.constant_of(node.inputs[1]) != nullptr;
    if (weighs && node.attrs.ints("lhs_batch").empty()) return std::nullopt;
    const DType type = graph.dtype(node.outputs[0]);
    if (!is_narrow(type) && type != DType::kF32) return std::nullopt;
    double factor = 1;
    std::vector<ValueId> operands;
    for (const ValueId operand : node.inputs) {
      const auto found = finder.unscaled(operand);
      ValueId v = r(found ? found->source : operand);
      for (size_t i = 0; found && i < found->views.size(); ++i) {
        v = r.emit(found->views[i]->op, {v}, found->views[i]->attrs);
      }
      operands.push_back(v);
      if (found) factor *= found->factor;
    }
    if (operands == r(node.inputs) || !std::isfinite(factor) || !finder.leads_to_exp(node.outputs[0])) {
      return std::nullopt;
    }
    ir::Attrs attrs = node.attrs;
    if (is_narrow(type)) attrs.set("out", DType::kF32);
    ir::Builder b(r.target());
    b.set_origins(r.origins());
    const ValueId product = r.emit(Op::kDot, operands, std::move(attrs));
    return std::vector{b.cast(b.binary(Op::kMul, product, factor), type)};
  });
}

}  // namespace heddle::passes
