#include "passes/fusion/context.h"

namespace heddle::passes {

using ir::NodeId;

void fuse_stitch(FusionContext& context) {
  for_each_memory_edge(context, [&](NodeId producer, NodeId consumer) {
    const bool yes = context.partition.merge(producer, consumer);
    context.decide(yes, "stitch", producer, consumer,
                   yes ? "both are memory-bound" : "a path through another kernel leads from one to the other");
  });
}

}  // namespace heddle::passes
