#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Replaces large constants that elementwise nodes and layout changes read by expressions of positions. Matrices of two
// values, one of them a contiguous span in each row (causal masks, windows, prefixes), become comparisons; vectors that
// count become iotas.
ir::Graph constant_masks(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
