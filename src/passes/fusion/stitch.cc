#include <optional>

#include "base/check.h"
#include "passes/fusion/context.h"

namespace heddle::passes {
namespace {

// True for a reshape, with several readers, of a value that another group stores. Its readers use that memory. In a
// stitch group, the reshape would be stored again for readers outside the group.
bool stays_view(const FusionContext& context, NodeId id) {
  const ir::Node* node = &context.graph.node(id);
  if (node->op != ir::Op::kReshape) return false;
  const ir::ValueId result = node->outputs[0];
  if (context.users[result].size() < 2 && !context.is_output[result]) return false;
  while (node->op == ir::Op::kReshape) node = &context.graph.producer(node->inputs[0]);
  return context.role[context.graph.value(node->outputs[0]).producer] != FusionContext::Role::kMemory;
}

// What several regions read is read once where they are one: rows and columns of the same data reduced, say.
void fuse_siblings(FusionContext& context) {
  constexpr int64_t kWorthSharing = 1 << 14;  // elements: less stays in the caches between two kernels
  const ir::Graph& graph = context.graph;
  for (ir::ValueId v = 0; v < graph.value_count(); ++v) {
    const int64_t elements = element_count(graph.shape(v));
    if (elements < kWorthSharing || context.users[v].size() < 2) continue;
    std::optional<NodeId> first;
    for (const NodeId reader : context.users[v]) {
      if (context.role[reader] != FusionContext::Role::kMemory || stays_view(context, reader)) continue;
      if (!first) first = reader;
      if (context.partition.same(*first, reader)) continue;
      if (context.are_apart(*first, reader)) continue;
      const bool fits = context.fits(*first, reader);
      const bool yes = fits && context.partition.merge(*first, reader);
      context.decide(yes, "siblings", reader, *first,
                     yes    ? fmt::format("both read the same {} elements", elements)
                     : fits ? "a path through another kernel leads from one to the other"
                            : FusionContext::too_many());
      if (!fits) first = reader;  // the next region begins
    }
  }
}

// A node that makes more bytes than it reads (a broadcast, a cast to a wider type) joins its only reader first. If it
// joined the maker of its operand, the larger value would be stored.
void fuse_growing(FusionContext& context) {
  const ir::Graph& graph = context.graph;
  const auto bytes = [&](ir::ValueId v) { return element_count(graph.shape(v)) * size_of(graph.dtype(v)); };
  for_each_memory_edge(context, [&](NodeId producer, NodeId consumer) {
    const ir::Node& node = graph.node(producer);
    if (node.inputs.size() != 1 || node.outputs.size() != 1 || context.users[node.outputs[0]].size() != 1) return;
    if (context.are_apart(producer, consumer)) return;
    if (bytes(node.outputs[0]) <= bytes(node.inputs[0]) || !context.fits(producer, consumer)) return;
    const bool yes = context.partition.merge(producer, consumer);
    HEDDLE_CHECK(yes, "a path leads from a node past its only reader to that reader");
    context.decide(true, "stitch", producer, consumer, "its result is larger than its operand");
  });
}

}  // namespace

void fuse_stitch(FusionContext& context) {
  fuse_growing(context);
  for_each_memory_edge(context, [&](NodeId producer, NodeId consumer) {
    if (stays_view(context, producer)) return;
    if (context.are_apart(producer, consumer)) {
      if (const auto why = context.apart.find({producer, consumer}); why != context.apart.end()) {
        context.decide(false, "stitch", producer, consumer, why->second);
      }
      return;
    }
    const bool fits = context.fits(producer, consumer);
    const bool yes = fits && context.partition.merge(producer, consumer);
    context.decide(yes, "stitch", producer, consumer,
                   yes    ? "both are memory-bound"
                   : fits ? "a path through another kernel leads from one to the other"
                          : FusionContext::too_many());
  });
  fuse_siblings(context);
}

}  // namespace heddle::passes
