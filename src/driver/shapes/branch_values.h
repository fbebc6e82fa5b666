#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace heddle::driver {

// Chooses input values for runs on made-up data, so that branches are taken sensibly. Returns one entry per input of
// the graph: a value if the input is a single integer or bool that decides branches, else nullopt.
//
// An integer input gets a constant that the graph compares it with, since other values are unlikely to be meaningful.
// If there are several constants, the input gets the first one whose branches are valid for the graph's shapes; if
// there is none, the first constant. A bool input gets a value only if exactly one of its two values leads to valid
// branches.
std::vector<std::optional<int64_t>> branch_values(const ir::Graph& graph);

}  // namespace heddle::driver
