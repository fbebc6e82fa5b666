#include "passes/precision.h"

#include <algorithm>

#include "base/one_of.h"
#include "ir/analysis/tolerance.h"
#include "ir/rewrite.h"

namespace heddle::passes {
namespace {

// Ops whose rounding or range suffers in 16 bits.
bool is_sensitive(const Node& node) {
  switch (ir::class_of(node.op)) {
    case OpClass::kReduction:
      return node.op != Op::kTopK && node.op != Op::kArgReduce;
    case OpClass::kWindow:
      return node.attrs.text("kind") == "sum" || node.attrs.text("kind") == "prod";
    default:
      break;
  }
  return ir::is_costly(node.op) || node.op == Op::kBitcast;
}

// What asks about a value is content with the precision that the others want.
bool is_question(const Node& node) {
  return ir::is_comparison(node.op) || node.op == Op::kIsNan || node.op == Op::kIsInf;
}

bool is_contraction(const Node& node) {
  return ir::class_of(node.op) == OpClass::kContraction;
}
// Nodes whose types are their own business.
bool is_opaque(const Node& node) {
  return ir::class_of(node.op) == OpClass::kControl || node.op == Op::kCall;
}
bool moves_elements(const Node& node) {
  return ir::class_of(node.op) == OpClass::kLayout || ir::class_of(node.op) == OpClass::kIndexing;
}

class Precisions {
 public:
  Precisions(const ir::Graph& graph, DType narrow)
      : graph_(graph), narrow_(narrow), wants_f32_(graph.value_count()), feeds_contraction_(graph.value_count()) {
    look_backwards();
  }

  ir::Graph run() {
    return ir::Rewriter(graph_).run(
        [this](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> { return visit(r, node); });
  }

 private:
  bool is_f32(ValueId v) const { return graph_.dtype(v) == DType::kF32; }

  // wants_f32: all that reads a value is sensitive, if need be behind elementwise and layout nodes.
  // feeds_contraction: a contraction reads it, perhaps behind layout nodes.
  void look_backwards() {
    const auto readers = ir::users(graph_);
    std::vector<bool> returned(graph_.value_count());
    for (const auto& port : graph_.outputs()) returned[port.value] = true;
    for (size_t i = graph_.nodes().size(); i-- > 0;) {
      for (ValueId v : graph_.nodes()[i].outputs) {
        const bool only_asked =
            std::all_of(readers[v].begin(), readers[v].end(), [&](NodeId id) { return is_question(graph_.node(id)); });
        wants_f32_[v] = returned[v] || !only_asked;
        for (NodeId id : readers[v]) {
          const Node& reader = graph_.node(id);
          if (is_question(reader)) continue;
          const ValueId result = reader.outputs[0];
          const bool passes_on = (ir::is_elementwise(reader.op) || moves_elements(reader)) && is_f32(result);
          if (!is_sensitive(reader) && !is_opaque(reader) && !(passes_on && wants_f32_[result])) wants_f32_[v] = false;
          if (is_contraction(reader) || (moves_elements(reader) && feeds_contraction_[result])) {
            feeds_contraction_[v] = true;
          }
        }
      }
    }
  }

  // The target's values of a source value. The rewriter's map holds the f32 form, whose producer is a cast from
  // `narrow` where the value is held in 16 bits; unused casts disappear.
  bool is_narrow(ir::Rewriter& r, ValueId v) const {
    const Node& made = r.target().producer(r(v));
    return made.op == Op::kCast && r.target().dtype(made.inputs[0]) == narrow_ && is_f32(v);
  }
  ValueId narrowed(ir::Rewriter& r, ValueId v) const {
    const Node& made = r.target().producer(r(v));
    if (is_narrow(r, v)) return made.inputs[0];
    return r.emit(Op::kCast, {r(v)}, {{"to", narrow_}});
  }
  ValueId widened(ir::Rewriter& r, ValueId v) const { return r.emit(Op::kCast, {v}, {{"to", DType::kF32}}); }

  // Sources without a precision of their own.
  bool is_neutral(ir::Rewriter& r, ValueId v) const {
    const Node* node = &r.target().producer(r(v));
    while (node->op == Op::kBroadcast || node->op == Op::kReshape) node = &r.target().producer(node->inputs[0]);
    return node->op == Op::kConstant || node->op == Op::kParameter || node->op == Op::kIota;
  }

  std::optional<std::vector<ValueId>> visit(ir::Rewriter& r, const Node& node) const {
    if (node.outputs.size() != 1 || is_opaque(node) || ir::is_in_place(node)) return std::nullopt;
    const ValueId out = node.outputs[0];
    if (is_contraction(node) && is_f32(out)) return std::vector{contraction(r, node)};
    if (!is_sensitive(node) && computes_narrow(r, node)) return std::vector{narrow_node(r, node)};
    if (!is_f32(out) || !feeds_contraction_[out] || ir::class_of(node.op) == OpClass::kSource) return std::nullopt;
    if (moves_elements(node) && is_neutral_node(r, node)) return std::nullopt;
    // Rounded once for all readers.
    const ValueId wide = r.copy(node)[0];
    return std::vector{widened(r, r.emit(Op::kCast, {wide}, {{"to", narrow_}}))};
  }

  bool is_neutral_node(ir::Rewriter& r, const Node& node) const { return is_neutral(r, node.inputs[0]); }

  ValueId contraction(ir::Rewriter& r, const Node& node) const {
    Attrs attrs = node.attrs;
    const bool wide = wants_f32_[node.outputs[0]];
    if (wide) attrs.set("out", DType::kF32);
    const ValueId result = r.emit(node.op, {narrowed(r, node.inputs[0]), narrowed(r, node.inputs[1])}, attrs);
    return wide ? result : widened(r, result);
  }

  // Whether an elementwise, layout or indexing node works on 16-bit values: one operand is held so, and none comes from
  // a sensitive node.
  bool computes_narrow(ir::Rewriter& r, const Node& node) const {
    const Op op = node.op;
    if (!ir::is_elementwise(op) && !moves_elements(node) && op != Op::kWindowReduce) return false;
    if (op == Op::kCast || op == Op::kBitcast) return false;
    if (is_f32(node.outputs[0]) && wants_f32_[node.outputs[0]] && ir::is_elementwise(op)) return false;
    bool any = false;
    for (ValueId v : node.inputs) {
      if (!is_f32(v)) continue;
      if (is_narrow(r, v)) {
        any = true;
      } else if (!is_neutral(r, v)) {
        return false;
      }
    }
    return any;
  }

  ValueId narrow_node(ir::Rewriter& r, const Node& node) const {
    std::vector<ValueId> inputs;
    for (ValueId v : node.inputs) inputs.push_back(is_f32(v) ? narrowed(r, v) : r(v));
    const ValueId result = r.emit(node.op, inputs, node.attrs);
    return is_f32(node.outputs[0]) ? widened(r, result) : result;
  }

  const ir::Graph& graph_;
  const DType narrow_;
  std::vector<bool> wants_f32_, feeds_contraction_;
};

// Contractions of f32 may round their operands to tf32.
ir::Graph allow_tf32(const ir::Graph& graph) {
  return ir::Rewriter(graph).run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    if (!is_contraction(node) || graph.dtype(node.inputs[0]) != DType::kF32) return std::nullopt;
    Attrs attrs = node.attrs;
    attrs.set("tf32", int64_t{1});
    return std::vector{r.emit(node.op, {r(node.inputs[0]), r(node.inputs[1])}, std::move(attrs))};
  });
}

}  // namespace

ir::Graph precision(const ir::Graph& graph, const PassContext& context) {
  if (context.precision == Precision::kF16) return Precisions(graph, DType::kF16).run();
  if (context.precision == Precision::kBF16) return Precisions(graph, DType::kBF16).run();
  return allow_tf32(graph);
}

}  // namespace heddle::passes
