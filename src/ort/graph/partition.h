#pragma once

#include <cstddef>
#include <vector>

namespace heddle::ort {

// The nodes of a graph that one session step can run together, and the edges between its nodes.
struct NodeGraph {
  std::vector<std::vector<size_t>> successors;  // of each node, in topological order: every edge leads to a later node
  std::vector<bool> wanted;                     // of each node
};

// Divides the wanted nodes into sets that are as large as possible. No path leads out of a set and back into it, and no
// sets wait for each other in a circle. Each set is connected by edges. Within a set, and among the sets by their first
// nodes, the order is ascending.
std::vector<std::vector<size_t>> partition(const NodeGraph& graph);

}  // namespace heddle::ort
