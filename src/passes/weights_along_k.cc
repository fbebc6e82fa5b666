#include "passes/weights_along_k.h"

#include <map>

#include "ir/rewrite.h"
#include "passes/dense.h"

namespace heddle::passes {
namespace {

using ir::Ints;
using ir::Node;
using ir::Op;
using ir::ValueId;

// Where a product asks for it: f32 that tensor cores multiply as tf32, which read k x n as little as bytes.
bool gains(const ir::Graph& graph, const Node& node) {
  if (node.op != Op::kDot || graph.producer(node.inputs[1]).op != Op::kConstant) return false;
  const bool tf32 = node.attrs.has("tf32") && node.attrs.integer("tf32") != 0;
  if (!tf32 || graph.dtype(node.inputs[1]) != DType::kF32) return false;
  const Shape& shape = graph.shape(node.inputs[1]);  // k x n
  if (shape.size() != 2 || element_count(shape) == 0 || !node.attrs.ints("rhs_batch").empty()) return false;
  return node.attrs.ints("rhs_contract") == Ints{0};
}

}  // namespace

ir::Graph weights_along_k(const ir::Graph& graph, const PassContext& context) {
  constexpr int kTensorCores = 80;
  if (context.target.kind != TargetKind::kCuda || context.target.cuda.sm < kTensorCores) return graph;
  std::map<ValueId, ValueId> turned;  // by the old graph's matrices
  return ir::drop_dead(
      ir::Rewriter(graph).run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
        if (!gains(graph, node)) return std::nullopt;
        const auto [found, is_new] = turned.try_emplace(node.inputs[1]);
        if (is_new) {
          ir::Attrs attrs;
          attrs.set("value", transposed(*graph.constant_of(node.inputs[1]), {1, 0}));
          const auto& origins = graph.producer(node.inputs[1]).origins;
          found->second = r.target().node(r.target().add(Op::kConstant, {}, std::move(attrs), origins)).outputs[0];
        }
        ir::Attrs attrs = node.attrs;
        attrs.set("rhs_contract", Ints{1});
        const std::vector<ValueId> inputs = {r(node.inputs)[0], found->second};
        return r.target().node(r.target().add(node.op, inputs, std::move(attrs), node.origins)).outputs;
      }));
}

}  // namespace heddle::passes
