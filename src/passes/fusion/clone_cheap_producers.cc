#include "passes/fusion/clone_cheap_producers.h"

#include <algorithm>

#include "ir/rewrite.h"

namespace heddle::passes {
namespace {

class Clones {
 public:
  explicit Clones(const ir::Graph& graph)
      : graph_(graph), readers_(ir::users(graph)), is_output_(graph.value_count(), false) {
    for (const ir::Graph::Port& port : graph.outputs()) is_output_[port.value] = true;
  }

  // One copy for each reader, made right before it; a reader of the same value twice gets one.
  std::optional<std::vector<ValueId>> visit(ir::Rewriter& r, const Node& node) const {
    std::vector<ValueId> inputs;
    bool changed = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      size_t first = 0;
      while (node.inputs[first] != v) ++first;
      inputs.push_back(first < i ? inputs[first] : copy_for_reader(r, v));
      changed = changed || inputs[i] != r(v);
    }
    if (!changed) return std::nullopt;
    return r.target().node(r.target().add(node.op, inputs, node.attrs, node.origins)).outputs;
  }

 private:
  ValueId copy_for_reader(ir::Rewriter& r, ValueId v) const {
    return readers_[v].size() > 1 && is_free(v) ? copy(r, v) : r(v);
  }

  // A view that cuts a slice again is copied together with that slice; else its copies would share it.
  ValueId copy(ir::Rewriter& r, ValueId v) const {
    const Node& node = graph_.producer(v);
    std::vector<ValueId> inputs = r(node.inputs);
    if (cuts_again(node) && !is_output_[node.inputs[0]]) inputs[0] = copy(r, node.inputs[0]);
    return r.target().emit(node.op, std::move(inputs), node.attrs, node.origins);
  }

  bool all_readers(ValueId v, bool (*accepts)(Op)) const {
    return std::all_of(readers_[v].begin(), readers_[v].end(), [&](NodeId id) { return accepts(graph_.node(id).op); });
  }

  // Whether it is a reshape or cast of a slice and is read in slices only.
  bool cuts_again(const Node& node) const {
    return (node.op == Op::kReshape || node.op == Op::kCast) && graph_.producer(node.inputs[0]).op == Op::kSlice &&
           all_readers(node.outputs[0], [](Op op) { return op == Op::kSlice; });
  }

  // What costs nothing where it is read: the rules of fusion look for such nodes at one reader.
  bool is_free(ValueId v) const {
    const Node& node = graph_.producer(v);
    if (node.op == Op::kBroadcast || node.op == Op::kIota) return true;
    if (is_output_[v]) return false;
    if (node.op == Op::kDequantize) return true;
    if (cuts_again(node)) return true;
    const bool one_row = node.op == Op::kGather && element_count(graph_.shape(node.inputs[1])) == 1;
    return (one_row || node.op == Op::kSlice) &&
           all_readers(v, [](Op op) { return ir::is_elementwise(op) || op == Op::kSlice; });
  }

  const ir::Graph& graph_;
  const std::vector<std::vector<NodeId>> readers_;
  std::vector<bool> is_output_;
};

}  // namespace

ir::Graph clone_cheap_producers(const ir::Graph& graph, const PassContext&) {
  const Clones clones(graph);
  return ir::Rewriter(graph).run([&](ir::Rewriter& r, const Node& node) { return clones.visit(r, node); });
}

}  // namespace heddle::passes
