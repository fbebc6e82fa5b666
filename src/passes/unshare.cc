#include "passes/unshare.h"

#include "ir/rewrite.h"

namespace heddle::passes {
namespace {

bool is_free(ir::Op op) {
  return op == ir::Op::kBroadcast || op == ir::Op::kIota;
}

}  // namespace

ir::Graph unshare(const ir::Graph& graph, const PassContext&) {
  const auto readers = ir::users(graph);
  return ir::Rewriter(graph).run([&](ir::Rewriter& r, const ir::Node& node) -> std::optional<std::vector<ir::ValueId>> {
    // One copy for each reader, made right before it; a reader of the same value twice gets one.
    std::vector<ir::ValueId> inputs;
    bool changed = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ir::ValueId v = node.inputs[i];
      const ir::Node& producer = graph.producer(v);
      size_t first = 0;
      while (node.inputs[first] != v) ++first;
      if (first < i) {
        inputs.push_back(inputs[first]);
      } else if (is_free(producer.op) && readers[v].size() > 1) {
        const ir::Node& made = r.target().producer(r(v));
        inputs.push_back(r.target().emit(made.op, made.inputs, made.attrs, made.origins));
        changed = true;
      } else {
        inputs.push_back(r(v));
      }
    }
    if (!changed) return std::nullopt;
    return r.target().node(r.target().add(node.op, inputs, node.attrs, node.origins)).outputs;
  });
}

}  // namespace heddle::passes
