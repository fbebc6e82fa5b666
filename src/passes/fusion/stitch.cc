#include <optional>

#include "base/check.h"
#include "passes/fusion/context.h"

namespace heddle::passes {

using ir::NodeId;

namespace {

// What several regions read is read once where they are one: rows and columns of the same data reduced, say.
void fuse_siblings(FusionContext& context) {
  constexpr int64_t kWorthSharing = 64 << 10;  // bytes: less stays in the caches between two kernels
  constexpr size_t kLargest = 1000;            // nodes of a region
  const ir::Graph& graph = context.graph;
  for (ir::ValueId v = 0; v < graph.value_count(); ++v) {
    const int64_t bytes = element_count(graph.shape(v)) * static_cast<int64_t>(size_of(graph.dtype(v)));
    if (bytes < kWorthSharing || context.users[v].size() < 2) continue;
    std::optional<NodeId> first;
    for (const NodeId reader : context.users[v]) {
      if (context.role[reader] != FusionContext::Role::kMemory) continue;
      if (!first) first = reader;
      if (context.partition.same(*first, reader)) continue;
      const auto nodes = [&](NodeId id) { return context.partition.nodes(context.partition.cluster_of(id)).size(); };
      const bool fits = nodes(*first) + nodes(reader) <= kLargest;
      const bool yes = fits && context.partition.merge(*first, reader);
      context.decide(yes, "siblings", reader, *first,
                     yes    ? fmt::format("both read the same {} bytes", bytes)
                     : fits ? "a path through another kernel leads from one to the other"
                            : fmt::format("together they have more than {} nodes", kLargest));
      if (!fits) first = reader;  // the next region begins
    }
  }
}

}  // namespace

void fuse_stitch(FusionContext& context) {
  for_each_memory_edge(context, [&](NodeId producer, NodeId consumer) {
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
