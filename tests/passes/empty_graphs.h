#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace heddle::passes {

// Graphs with an extent of 0 in every kind of node that has a kernel, alone and between others, and what is left of
// them.
struct EmptyGraph {
  std::string name, text;
};
std::vector<EmptyGraph> empty_graphs();
// All of them side by side.
ir::Graph empty_graphs_in_one();

}  // namespace heddle::passes
