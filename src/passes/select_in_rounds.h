#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// The choice of a few elements (the experts of a token, the beams of a step) as rounds that each find the largest of
// what is left: arg_reduce and select, which kernels of a GPU compute beside what is around them.
ir::Graph select_in_rounds(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
