#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Large constants that positions say as well, where elementwise nodes and changes of layout read them: matrices of two
// values that rows have side by side (causal masks, windows, prefixes) become comparisons, vectors that count become
// iotas.
ir::Graph constant_masks(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
