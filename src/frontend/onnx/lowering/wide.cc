#include "frontend/onnx/lowering/wide.h"

#include <algorithm>
#include <map>
#include <set>

namespace heddle::onnx {
namespace {

using ir::Node;
using ir::Op;
using ir::OpClass;
using ir::ValueId;

bool is_half(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16;
}

// f16 and bf16 represent every value of such an integer type.
bool fits_half(DType dtype) {
  return is_half(dtype) || size_of(dtype) == 1;
}

// True if a node rounds its result; others return the value of an operand, perhaps with another sign.
bool rounds(const ir::Graph& graph, const Node& node) {
  switch (node.op) {
    case Op::kNeg:
    case Op::kAbs:
    case Op::kSign:
    case Op::kMax:
    case Op::kMin:
    case Op::kBitcast:
      return false;
    case Op::kCast:
      return !fits_half(graph.dtype(node.inputs[0]));
    case Op::kReduce:
    case Op::kScan:
    case Op::kWindowReduce:
      return node.attrs.text("kind") == "sum" || node.attrs.text("kind") == "prod";
    default:
      return ir::class_of(node.op) == OpClass::kUnary || ir::class_of(node.op) == OpClass::kBinary;
  }
}

// The nodes that a handler emitted.
class Lowered {
 public:
  Lowered(const NodeContext& ctx, size_t first) : graph_(ctx.b.graph()), first_(first) {
    for (size_t i = 0; i < ctx.outputs().size(); ++i) {
      if (ctx.wants(i) && ctx.outputs()[i].is_tensor()) results_.insert(source_of(ctx.outputs()[i].tensor()));
    }
    for (size_t i = 0; i < ctx.input_count(); ++i) {
      if (!ctx.value(i).is_tensor() || graph_.constant_of(source_of(ctx.in(i))) != nullptr) continue;
      reads_.try_emplace(ctx.in(i), std::set{ctx.in(i)});
    }
  }

  // True if a half inside the operator is rounded and may be stored: values that are reduced, that depend on several
  // inputs (other kernels may make them), or that are converted.
  bool rounds_inside() {
    bool inside = false, stored = false;
    for (size_t i = first_; i < graph_.nodes().size(); ++i) {
      const Node& node = graph_.nodes()[i];
      if (keeps_types(node)) return false;
      const ValueId value = node.outputs[0];
      const std::set<ValueId>& read = reads(node);
      if (!is_half(graph_.dtype(value))) continue;
      const bool inner = rounds(graph_, node) && !results_.contains(value);
      const OpClass kind = ir::class_of(node.op);
      inside = inside || inner;
      stored = stored || kind == OpClass::kReduction || kind == OpClass::kWindow || read.size() > 1 ||
               (inner && node.op == Op::kCast);
    }
    return inside && stored;
  }

 private:
  static bool keeps_types(const Node& node) {
    const OpClass kind = ir::class_of(node.op);
    return kind == OpClass::kContraction || kind == OpClass::kControl || node.op == Op::kCall || node.op == Op::kRandom;
  }

  // Looks through nodes that only change the layout.
  ValueId source_of(ValueId v) const {
    while (ir::class_of(graph_.producer(v).op) == OpClass::kLayout) v = graph_.producer(v).inputs[0];
    return v;
  }

  // The operator's inputs, constants aside, that a node depends on.
  const std::set<ValueId>& reads(const Node& node) {
    std::set<ValueId>& all = reads_[node.outputs[0]];
    for (const ValueId v : node.inputs) {
      if (const auto found = reads_.find(v); found != reads_.end())
        all.insert(found->second.begin(), found->second.end());
    }
    return all;
  }

  const ir::Graph& graph_;
  const size_t first_;
  std::set<ValueId> results_;                   // seen through layouts
  std::map<ValueId, std::set<ValueId>> reads_;  // by value
};

bool has_half(const NodeContext& ctx) {
  for (size_t i = 0; i < ctx.input_count(); ++i) {
    if (ctx.value(i).is_tensor() && is_half(ctx.dtype(i))) return true;
  }
  return false;
}

bool has_body(const NodeContext& ctx) {
  const auto& attributes = ctx.node().attributes;
  return std::any_of(attributes.begin(), attributes.end(), [](const AttributeProto& a) {
    return a.type == AttributeProto::Type::kGraph || a.type == AttributeProto::Type::kGraphs;
  });
}

}  // namespace

void lower_wide(const OpHandler& handler, NodeContext& ctx) {
  const size_t first = ctx.b.graph().nodes().size();
  handler.lower(ctx);
  if (!has_half(ctx) || has_body(ctx) || !Lowered(ctx, first).rounds_inside()) return;
  const std::vector<Value> narrow = ctx.outputs();
  for (size_t i = 0; i < ctx.input_count(); ++i) {
    if (ctx.value(i).is_tensor() && is_half(ctx.dtype(i))) ctx.replace_input(i, ctx.b.cast(ctx.in(i), DType::kF32));
  }
  handler.lower(ctx);
  for (size_t i = 0; i < narrow.size(); ++i) {
    if (narrow[i].is_tensor()) ctx.set(i, ctx.b.cast(ctx.outputs()[i].tensor(), ctx.b.dtype(narrow[i].tensor())));
  }
}

}  // namespace heddle::onnx
