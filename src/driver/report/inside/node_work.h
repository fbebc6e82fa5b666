#pragma once

#include <cstdint>
#include <vector>

#include "ir/group.h"

namespace heddle::driver {

// The work of one node of a group. `bytes` counts the group outputs that the node computes and the group inputs that
// the node reads, except inputs that an earlier node of the group reads. `flops` is in units of an addition; a
// multiply-add counts as two.
struct NodeWork {
  int64_t bytes = 0, flops = 0;
};

// The work of each node, in the order of group.nodes.
std::vector<NodeWork> work_of(const ir::Graph& graph, const ir::Group& group);

// Estimates each node's fraction of a kernel's time; the fractions sum to 1. A node's time is the larger of bytes /
// `bandwidth` and flops / `rate` (both per second). Work that serves several nodes at once is attributed to none of
// them. This is only an estimate.
std::vector<double> shares_of(const std::vector<NodeWork>& work, double bandwidth, double rate);

}  // namespace heddle::driver
