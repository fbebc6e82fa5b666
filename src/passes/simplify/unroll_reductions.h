#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Unrolls a reduction of a few terms whose result is reduced again, for example a sum over the branches of a network
// that is then summed over pixels. A kernel is mapped to the second reduction. If the first reduction were a loop
// inside this kernel, each result of the first reduction would need a separate pass over the data. In such a pass,
// neighbouring threads read elements that are not adjacent.
ir::Graph unroll_reductions(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
