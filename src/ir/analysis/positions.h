#pragma once

#include <vector>

#include "ir/graph.h"

namespace heddle::ir {

// What kernels compute of positions as fast as they would load it: comparisons, logic, selections, arithmetic and
// casts.
bool is_cheap(Op op);

// For every value whether it depends on positions only: it comes from iotas and constants of one repeated element by
// cheap operators and changes of layout. Such a value needs no memory, whatever its size.
std::vector<bool> of_positions(const Graph& graph);

}  // namespace heddle::ir
