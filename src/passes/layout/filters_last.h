#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// For convolutions whose filters are computed in each run, transposes the filters to channels last, the order in which
// tensor cores accumulate. A convolution with the transpose of computed 1x1 filters becomes a product, which needs no
// transpose. Constant filters are packed when the model is compiled instead.
ir::Graph filters_last(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
