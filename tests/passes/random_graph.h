#pragma once

#include <cstdint>

#include "ir/graph.h"

namespace heddle::passes {

// A seeded random graph of `nodes` steps over small tensors: all families that passes rewrite, with shapes that share
// extents so that nodes connect, and constants, ones, scalars and empty dimensions among them.
ir::Graph random_graph(uint32_t seed, int nodes);

}  // namespace heddle::passes
