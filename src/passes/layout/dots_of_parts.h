#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Turns a product with a concatenation into products with its parts, if a part is an input of the graph and no other
// node needs the concatenation: the keys and values of a decoder's cache are then read where they lie, and not copied
// in each step to put those of the new token behind them. Results of the parts are concatenated, or added if the
// product sums over the concatenated dimension. Applies where the results are few beside the copied elements.
ir::Graph dots_of_parts(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
