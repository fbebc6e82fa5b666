#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace heddle::driver {

// For each input of a graph: the value to use in a run on made-up inputs, if the input is one integer or bool that
// decides branches. An integer gets a constant that the graph compares it with, since other values are unlikely to be
// meaningful. Of several constants it gets the first whose branches are valid for the graph's shapes, or the first if
// none has such branches. A bool gets a value only if the branches of exactly one of its values are valid.
std::vector<std::optional<int64_t>> branch_values(const ir::Graph& graph);

}  // namespace heddle::driver
