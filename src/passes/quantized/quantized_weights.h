#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Replaces constant weights of the form (q - z) * s by `dequantize` nodes. q has integers of at most 8 bits. The scale
// s and the zero point z are shared by blocks of neighbours along the summed dimension of the product that reads the
// weights; both may also be shared by all rows or all columns. table[q] * s is another form. How the model unpacks q,
// spreads s and z over their blocks, or transposes the weights makes no difference.
ir::Graph quantized_weights(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
