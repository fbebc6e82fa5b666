#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "passes/fusion/fusion.h"
#include "passes/fusion/partition.h"

namespace heddle::passes {

// The state that fusion rules share. A rule looks at nodes, asks `partition` to merge them, sets `role`, and appends to
// `decisions`.
class FusionContext {
 public:
  FusionContext(const ir::Graph& graph, const FusionOptions& options);

  // The role that the rules have given a node so far.
  enum class Role : uint8_t { kFree, kMemory, kAnchor, kPrologue, kEpilogue, kControl, kTile, kReference, kJoin };

  const ir::Graph& graph;
  const FusionOptions& options;
  Partition partition;
  const std::vector<std::vector<ir::NodeId>> users;
  const std::vector<bool> of_positions;                // by value (ir/analysis/positions.h)
  std::vector<bool> is_output;                         // by value: returned by the graph
  std::vector<Role> role;                              // by node; kMemory: a stitch group may take it
  std::vector<std::optional<ir::GroupKind>> chain_of;  // by node: the kind of an anchor's group of two contractions
  std::vector<ir::Decision> decisions;
  // By producer and reader, both memory-bound: why they must be separate kernels.
  std::map<std::pair<ir::NodeId, ir::NodeId>, std::string> apart;

  // "add (/encoder/Add)"
  std::string describe(ir::NodeId id) const;
  const ir::Decision& decide(bool yes, std::string_view rule, ir::NodeId what, ir::NodeId into, std::string reason);
  // True if the groups of two nodes together are scheduled in reasonable time. Longer chains become several groups.
  bool fits(ir::NodeId a, ir::NodeId b) const;
  static std::string too_many();
  // True if the groups of two nodes hold a producer and a reader that must be separate kernels (`apart`).
  bool are_apart(ir::NodeId a, ir::NodeId b) const;
  // True if no node but `reader` reads a value and the graph does not return it.
  bool only_read_by(ir::ValueId value, ir::NodeId reader) const;
  // A group of these nodes, with its inputs and outputs. The anchor is the first node; the kind is not set.
  ir::Group group_of(std::vector<ir::NodeId> nodes) const;

 private:
  void classify();
};

// The innermost dimension of more than one element; the rank if there is none.
size_t innermost(const Shape& shape);
// True if a layout change keeps the innermost dimension innermost.
bool keeps_columns(const ir::Graph& graph, const ir::Node& node);

// Adds elementwise consumers, layout changes of the store and, on a GPU, reductions of a few neighbouring elements to
// the group of an anchor.
void fuse_epilogue(FusionContext& context, ir::NodeId anchor, const Target& target);
// If two products form an attention (FusionOptions::find_attention) that one kernel should run, adds all nodes between
// them to the group of the second one, with the layout changes of its operands and of its result.
void fuse_attention(FusionContext& context, ir::NodeId anchor);
// Joins the groups of two contractions if the second one multiplies all results of the first one and one kernel should
// run both (FusionOptions::can_run_back_to_back). Call it after the epilogues and prologues of both are fused.
void fuse_back_to_back(FusionContext& context, ir::NodeId anchor);
// Adds the layout changes of a dot's operands to the dot's group if one strided view expresses them.
void fuse_prologue(FusionContext& context, ir::NodeId anchor, const Target& target);
// Calls `try_edge(producer, consumer)` in topological order for every edge between nodes that stitch groups may take
// and that are not in one cluster yet.
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

// Marks the layout changes around gathers of whole rows that must be separate kernels (FusionContext::apart).
void keep_gathered_rows_apart(FusionContext& context, const Target& target);
// Joins memory-bound nodes: everything connected, and regions that read the same value.
void fuse_stitch(FusionContext& context);
// Joins small independent regions, whatever they compute. For CPUs, which run them side by side.
void fuse_small_regions(FusionContext& context, const Target& target);
void fuse_basic(FusionContext& context);
// Joins small elementwise groups, each over one shape, such as an optimiser's updates of many tensors. For GPUs, where
// a launch takes as long as moving megabytes.
void fuse_remote(FusionContext& context);

}  // namespace heddle::passes
