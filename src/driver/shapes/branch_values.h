#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace heddle::driver {

// For each input of a graph: the value that it has in a run whose inputs are made up, if it is one integer or bool that
// decides branches. An integer has a value that the graph compares it with, as nothing else is likely to mean
// something; of several the first whose branches hold for the graph's shapes. A bool has one if only one value of it
// takes branches that hold.
std::vector<std::optional<int64_t>> branch_values(const ir::Graph& graph);

}  // namespace heddle::driver
