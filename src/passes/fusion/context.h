#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "passes/fusion/fusion.h"
#include "passes/fusion/partition.h"

namespace heddle::passes {

// What the fusion rules share. A rule looks at nodes, asks `partition` to merge, sets `owner`, and appends to
// `decisions`.
class FusionContext {
 public:
  FusionContext(const ir::Graph& graph, const FusionOptions& options);

  // What a node was taken for so far.
  enum class Role : uint8_t { kFree, kMemory, kAnchor, kPrologue, kEpilogue, kControl, kTile, kReference, kJoin };

  const ir::Graph& graph;
  const FusionOptions& options;
  Partition partition;
  const std::vector<std::vector<ir::NodeId>> users;
  const std::vector<bool> of_positions;                // by value (ir/analysis/positions.h)
  std::vector<bool> is_output;                         // by value: returned by the graph
  std::vector<Role> role;                              // by node; kMemory: a stitch group may have it
  std::vector<std::optional<ir::GroupKind>> chain_of;  // by node: an anchor whose group has two contractions
  std::vector<ir::Decision> decisions;
  // By producer and reader: why they are to be kernels apart, although both are memory-bound.
  std::map<std::pair<ir::NodeId, ir::NodeId>, std::string> apart;

  // "add (/encoder/Add)"
  std::string describe(ir::NodeId id) const;
  const ir::Decision& decide(bool yes, std::string_view rule, ir::NodeId what, ir::NodeId into, std::string reason);
  // Whether the groups of two nodes make one that is scheduled in reasonable time. A longer chain is several groups.
  bool fits(ir::NodeId a, ir::NodeId b) const;
  static std::string too_many();
  // Whether the groups of two nodes hold a producer and a reader that are to be apart.
  bool are_apart(ir::NodeId a, ir::NodeId b) const;
  // The one node that reads a value, all of whose reads are that node's, and which is no output; else nothing.
  bool only_read_by(ir::ValueId value, ir::NodeId reader) const;
  // These nodes with what goes in and out; its kind is left open, the anchor is its first node.
  ir::Group group_of(std::vector<ir::NodeId> nodes) const;

 private:
  void classify();
};

// The innermost dimension of more than one element; the rank where there is none.
size_t innermost(const Shape& shape);
// Whether a change of layout leaves the innermost dimension alone.
bool keeps_columns(const ir::Graph& graph, const ir::Node& node);

// Takes elementwise consumers, layout changes of the store and, on a GPU, reductions of neighbours into the group of an
// anchor.
void fuse_epilogue(FusionContext& context, ir::NodeId anchor, const Target& target);
// Takes all that lies between two products into the group of the second one, with layout changes of its operands and of
// its result, where that is an attention (FusionOptions::find_attention) and one kernel is to run it.
void fuse_attention(FusionContext& context, ir::NodeId anchor);
// Joins the group of a contraction with that of another one, all of whose results it multiplies, where one kernel is to
// run both (FusionOptions::can_run_back_to_back). Behind the epilogues and prologues of both.
void fuse_back_to_back(FusionContext& context, ir::NodeId anchor);
// Takes layout changes of a dot's operands that one strided view expresses into the dot's group.
void fuse_prologue(FusionContext& context, ir::NodeId anchor);
// `try_edge(producer, consumer)` for every edge between nodes that stitch groups may have and that are not in one
// cluster yet, in topological order.
template <typename F>
void for_each_memory_edge(const FusionContext& c, F try_edge) {
  for (ir::NodeId id = 0; id < c.graph.nodes().size(); ++id) {
    if (c.role[id] != FusionContext::Role::kMemory) continue;
    for (ir::ValueId v : c.graph.node(id).inputs) {
      const ir::NodeId producer = c.graph.value(v).producer;
      if (c.role[producer] == FusionContext::Role::kMemory && !c.partition.same(producer, id)) try_edge(producer, id);
    }
  }
}

// Says which changes of layout around gathers of whole rows are to be kernels apart (FusionContext::apart).
void keep_gathered_rows_apart(FusionContext& context, const Target& target);
// Joins memory-bound nodes: everything connected, and regions that read the same value.
void fuse_stitch(FusionContext& context);
// Joins small regions that do not depend on each other, whatever they are. For CPUs, which run them side by side.
void fuse_small_regions(FusionContext& context, const Target& target);
void fuse_basic(FusionContext& context);
// Joins small elementwise groups over equal shapes, as the updates of an optimiser's many tensors. For GPUs, where a
// launch costs what it takes to move megabytes.
void fuse_remote(FusionContext& context);

}  // namespace heddle::passes
