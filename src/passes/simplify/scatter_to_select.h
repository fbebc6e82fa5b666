#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Scatters that combine nothing and whose indices are constants, as exporters write assignments to slices: which update
// an element of the result has is known, so it is a selection among loads, which kernels of a GPU compute beside what
// is around it.
ir::Graph scatter_to_select(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
