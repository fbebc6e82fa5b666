#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Moves the selection of rows (slice, gather, gather_nd with one index per batch) in front of the products that compute
// the rows, if nothing else reads them: the last token's logits, the class token of an encoder. The selection passes
// through products, row-wise operators and layout changes. It stops at values that have other readers, and at operators
// that combine rows.
ir::Graph select_early(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
