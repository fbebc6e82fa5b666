#pragma once

#include <cstdint>
#include <vector>

#include "ir/group.h"

namespace heddle::driver {

// The work of a node of a group. `bytes` are those of the group's outside values that it is the first to read, or
// makes. An operation is an addition or half of a multiply-add.
struct NodeWork {
  int64_t bytes = 0, flops = 0;
};

// By node of the group, in its order.
std::vector<NodeWork> work_of(const ir::Graph& graph, const ir::Group& group);

// Shares of a kernel's time by node, which sum to 1: the larger of bytes by `bandwidth` and operations by `rate` (both
// a second). This is an estimate: work that serves several nodes at once belongs to none of them.
std::vector<double> shares_of(const std::vector<NodeWork>& work, double bandwidth, double rate);

}  // namespace heddle::driver
