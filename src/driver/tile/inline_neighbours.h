#pragma once

#include <vector>

#include "ir/group.h"

namespace heddle::driver {

// Makes elementwise nodes around calls of tile programs part of these: what one reads is computed where its kernels load
// it, what is made of its result where they store it. Tells each one that was taken or refused.
ir::Graph inline_neighbours(const ir::Graph& graph, std::vector<ir::Decision>& decisions);

}  // namespace heddle::driver
