#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "passes/pass.h"

namespace heddle::passes {

// Kernels write the parts of a stored concatenation directly into its memory (ir::joins_in_place()), so that no kernel
// copies them. A part that cannot be written there is copied: by the kernel that makes it if that can store it twice,
// else by a kernel of its own. A concatenation that has all parts of another one, side by side, holds that one. Runs
// last, since it needs the groups of the plan.
ir::Graph join_in_place(const ir::Graph& graph, const PassContext& context);

// Obstacles to concatenations in place, found from the groups of a graph.
class JoinObstacles {
 public:
  JoinObstacles(const ir::Graph& graph, const ir::Grouping& grouping, const Target& target,
                const ir::PlacementObstacle& obstacle);

  // Whether a kernel stores the concatenation, or it is in place.
  bool is_stored(ir::NodeId concat) const;
  // Why the kernel that contains a concatenation had better copy it; empty: it need not.
  std::string of_concat(ir::NodeId concat) const;
  // Why a value cannot be computed at a place in a concatenation; empty: it can.
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
  std::vector<uint32_t> group_of_;  // by node
  std::vector<bool> is_output_;     // by value
};

}  // namespace heddle::passes
