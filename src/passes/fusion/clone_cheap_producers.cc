#include "passes/fusion/clone_cheap_producers.h"

#include <algorithm>

#include "ir/rewrite.h"

namespace heddle::passes {
namespace {

// What costs nothing where it is read: the rules of fusion look for such nodes at one reader.
bool is_free(const ir::Graph& graph, const ir::Node& node, const std::vector<ir::NodeId>& readers, bool is_output) {
  if (node.op == ir::Op::kBroadcast || node.op == ir::Op::kIota) return true;
  const bool one_row = node.op == ir::Op::kGather && element_count(graph.shape(node.inputs[1])) == 1;
  if (is_output || (!one_row && node.op != ir::Op::kSlice)) return false;
  return std::all_of(readers.begin(), readers.end(), [&](ir::NodeId id) {
    const ir::Op op = graph.node(id).op;
    return ir::is_elementwise(op) || op == ir::Op::kSlice;
  });
}

}  // namespace

ir::Graph clone_cheap_producers(const ir::Graph& graph, const PassContext&) {
  const auto readers = ir::users(graph);
  std::vector<bool> is_output(graph.value_count(), false);
  for (const ir::Graph::Port& port : graph.outputs()) is_output[port.value] = true;
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
      } else if (readers[v].size() > 1 && is_free(graph, producer, readers[v], is_output[v])) {
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
