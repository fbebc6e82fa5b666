#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Gives convolutions whose filters are computed in each run filters with the channels last, in the order in which
// tensor cores sum them up. Filters that are constants are packed when a model is compiled.
ir::Graph filters_last(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
