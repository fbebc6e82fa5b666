#include "passes/fusion/basic.h"

#include <algorithm>
#include <map>

#include "ir/rewrite.h"
#include "passes/fusion/context.h"

namespace heddle::passes {
namespace {

bool is_reduction(Op op) {
  return ir::class_of(op) == ir::OpClass::kReduction;
}

double bytes_of(const ir::Graph& graph, ValueId v) {
  return static_cast<double>(element_count(graph.shape(v))) * static_cast<double>(size_of(graph.dtype(v)));
}

// Which nodes get a copy for each reader, and how many: from the last to the first, since the copies of a reader count.
std::vector<int64_t> copies_of(const ir::Graph& graph) {
  constexpr int64_t kMostCopies = 8;  // chains of copies double; nobody's kernels do
  const auto users = ir::users(graph);
  std::vector<bool> is_output(graph.value_count(), false);
  for (const ir::Graph::Port& port : graph.outputs()) is_output[port.value] = true;
  std::vector<int64_t> copies(graph.nodes().size(), 1);
  for (NodeId id = static_cast<NodeId>(graph.nodes().size()); id-- > 0;) {
    const Node& node = graph.node(id);
    if (!ir::is_memory_bound(node.op) || is_reduction(node.op) || node.op == Op::kConstant || ir::is_costly(node.op)) {
      continue;
    }
    const ValueId v = node.outputs[0];
    int64_t readers = 0;
    bool all_memory = true;
    for (const NodeId user : users[v]) {
      readers += copies[user];
      all_memory = all_memory && ir::is_memory_bound(graph.node(user).op);
    }
    if (is_output[v] || !all_memory || readers < 2 || readers > kMostCopies) continue;
    double in = 0;
    for (const ValueId input : node.inputs) in += std::min(bytes_of(graph, input), bytes_of(graph, v));
    const double k = static_cast<double>(readers);
    if (k * in <= in + (1 + k) * bytes_of(graph, v)) copies[id] = readers;
  }
  return copies;
}

}  // namespace

ir::Graph duplicate_cheap_producers(const ir::Graph& graph) {
  const std::vector<int64_t> copies = copies_of(graph);
  return ir::Rewriter(graph).run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    ir::Attrs attrs = node.attrs;
    for (const auto& [name, attr] : node.attrs) {
      if (const auto* body = std::get_if<std::shared_ptr<const ir::Graph>>(&attr)) {
        attrs.set(name, std::make_shared<const ir::Graph>(duplicate_cheap_producers(**body)));
      }
    }
    // A copy of the whole cheap tree above each operand, made for this reader.
    const std::function<ValueId(ValueId)> fresh = [&](ValueId v) -> ValueId {
      const NodeId producer = graph.value(v).producer;
      if (copies[producer] < 2) return r(v);
      const Node& made = graph.node(producer);
      std::vector<ValueId> inputs;
      for (const ValueId input : made.inputs) inputs.push_back(fresh(input));
      return r.target().emit(made.op, std::move(inputs), made.attrs, made.origins);
    };
    std::map<ValueId, ValueId> own;  // an operand that is read twice is made once
    std::vector<ValueId> inputs;
    for (const ValueId v : node.inputs) {
      const auto [at, is_new] = own.try_emplace(v, 0);
      if (is_new) at->second = fresh(v);
      inputs.push_back(at->second);
    }
    const NodeId id = r.target().add(node.op, std::move(inputs), std::move(attrs), node.origins);
    return r.target().node(id).outputs;
  });
}

void fuse_basic(FusionContext& context) {
  const auto has_costly = [&](NodeId id) {
    const auto& nodes = context.partition.nodes(context.partition.cluster_of(id));
    return std::any_of(nodes.begin(), nodes.end(), [&](NodeId n) { return ir::is_costly(context.graph.node(n).op); });
  };
  for_each_memory_edge(context, [&](NodeId producer, NodeId consumer) {
    const Node& node = context.graph.node(producer);
    const ValueId result = context.graph.node(consumer).outputs[0];
    const bool repeats =
        context.graph.node(consumer).op == Op::kBroadcast &&
        element_count(context.graph.shape(result)) > element_count(context.graph.shape(node.outputs[0]));
    if (is_reduction(node.op)) {
      context.decide(false, "basic", producer, consumer, "one element of the reduction feeds many of the consumer");
    } else if (!context.only_read_by(node.outputs[0], consumer)) {
      context.decide(false, "basic", producer, consumer, "it would be computed once for each of its readers");
    } else if (repeats && has_costly(producer)) {
      context.decide(false, "basic", producer, consumer,
                     "a costly value would be computed for every element that it is broadcast to");
    } else if (!context.fits(producer, consumer)) {
      context.decide(false, "basic", producer, consumer, FusionContext::too_many());
    } else {
      const bool yes = context.partition.merge(producer, consumer);
      context.decide(yes, "basic", producer, consumer,
                     yes ? "computed where it is read" : "a path through another kernel leads from one to the other");
    }
  });
}

}  // namespace heddle::passes
