#pragma once

#include <cstdint>
#include <vector>

#include "ir/group.h"

namespace heddle::driver {

// What a node of a group has to do: bytes of the group's outside values that it is the first to read, or makes, and
// operations, where one is an addition or half of a multiply-add.
struct NodeWork {
  int64_t bytes = 0, flops = 0;
};

// By node of the group, in its order.
std::vector<NodeWork> work_of(const ir::Graph& graph, const ir::Group& group);

// Shares of a kernel's time by node, which sum to 1: the larger of bytes by `bandwidth` and operations by `rate` (both
// a second). An estimate: what the kernel does for several nodes at once is nobody's in particular.
std::vector<double> shares_of(const std::vector<NodeWork>& work, double bandwidth, double rate);

}  // namespace heddle::driver
