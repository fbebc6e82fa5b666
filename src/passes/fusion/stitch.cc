#include "passes/fusion/context.h"

namespace heddle::passes {
namespace {

using ir::Node;
using ir::NodeId;
using ir::Op;
using Role = FusionContext::Role;

// `try_edge(producer, consumer)` for every edge between nodes that stitch groups may have, in topological order.
template <typename F>
void for_each_edge(const FusionContext& c, F try_edge) {
  for (NodeId id = 0; id < c.graph.nodes().size(); ++id) {
    if (c.role[id] != Role::kMemory) continue;
    for (ir::ValueId v : c.graph.node(id).inputs) {
      const NodeId producer = c.graph.value(v).producer;
      if (c.role[producer] == Role::kMemory && !c.partition.same(producer, id)) try_edge(producer, id);
    }
  }
}

}  // namespace

void fuse_stitch(FusionContext& context) {
  for_each_edge(context, [&](NodeId producer, NodeId consumer) {
    const bool yes = context.partition.merge(producer, consumer);
    context.decide(yes, "stitch", producer, consumer,
                   yes ? "both are memory-bound" : "a path through another kernel leads from one to the other");
  });
}

void fuse_basic(FusionContext& context) {
  for_each_edge(context, [&](NodeId producer, NodeId consumer) {
    const Node& node = context.graph.node(producer);
    if (ir::class_of(node.op) == ir::OpClass::kReduction) {
      context.decide(false, "basic", producer, consumer, "one element of the reduction feeds many of the consumer");
    } else if (!context.only_read_by(node.outputs[0], consumer)) {
      context.decide(false, "basic", producer, consumer, "it would be computed once for each of its readers");
    } else {
      const bool yes = context.partition.merge(producer, consumer);
      context.decide(yes, "basic", producer, consumer,
                     yes ? "computed where it is read" : "a path through another kernel leads from one to the other");
    }
  });
}

}  // namespace heddle::passes
