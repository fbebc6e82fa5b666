#pragma once

#include "ir/group.h"
#include "target/target.h"

namespace heddle::passes {

enum class FusionPolicy : uint8_t {
  kNone,    // every node is a kernel of its own
  kBasic,   // producer into consumer per element, as common compilers do
  kStitch,  // memory-bound regions as one kernel, epilogues into contractions
};

struct FusionOptions {
  FusionPolicy policy = FusionPolicy::kStitch;
};

// Partitions the nodes of a graph into groups. Each rule (fusion/<rule>.h) returns a Decision, and each decision made
// on the way is in the result. Nodes that no compiler path takes form reference groups.
ir::Grouping fuse(const ir::Graph& graph, const Target& target, const FusionOptions& options = {});

}  // namespace heddle::passes
