#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "passes/pass.h"

namespace heddle::passes {

// Lets kernels write the operands of a stored concatenation directly into its memory (ir::joins_in_place()), so that no
// kernel copies them. An operand that cannot be written there is copied: by the kernel that computes it if that kernel
// can store it twice, else by a separate kernel. If the operands of one concatenation are a contiguous subsequence of
// the operands of another, the smaller concatenation becomes a view of the larger one. Runs last, because it needs the
// groups of the plan.
ir::Graph join_in_place(const ir::Graph& graph, const PassContext& context);

// Finds the obstacles to concatenating in place, given the groups of a graph.
class JoinObstacles {
 public:
  JoinObstacles(const ir::Graph& graph, const ir::Grouping& grouping, const Target& target,
                const ir::PlacementObstacle& obstacle);

  // True if a kernel stores the concatenation, or if the concatenation is in place.
  bool is_stored(ir::NodeId concat) const;
  // Returns the reason why the operands of a concatenation should be copied by the kernel that contains the
  // concatenation. Empty if there is none.
  std::string of_concat(ir::NodeId concat) const;
  // Returns the reason why a value cannot be computed directly at `place` in a concatenation. Empty if there is none.
  std::string of_part(ir::ValueId value, ir::NodeId concat, const ir::Placement& place) const;

 private:
  bool is_stored(ir::ValueId value, uint32_t group) const;
  bool is_read_inside(ir::ValueId value, uint32_t group) const;
  uint32_t group_of(ir::ValueId value) const { return group_of_[graph_.value(value).producer]; }

  const ir::Graph& graph_;
  const ir::Grouping& grouping_;
  const Target& target_;
  const ir::PlacementObstacle& obstacle_;
  const std::vector<std::vector<ir::NodeId>> users_;
  const ir::Placements placed_;
  std::vector<uint32_t> group_of_;  // for each node
  std::vector<bool> is_output_;     // for each value
};

}  // namespace heddle::passes
