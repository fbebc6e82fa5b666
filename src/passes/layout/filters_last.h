#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Transposes the filters of a convolution to channels last, the order in which tensor cores accumulate, if the filters
// are computed in each run. Constant filters are packed when the model is compiled instead.
ir::Graph filters_last(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
