#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Replaces large constants by expressions of element indices, if elementwise nodes or layout changes read them. A
// matrix with two distinct values becomes a comparison if one value occupies a contiguous span in each row (causal
// masks, windows, prefixes). A vector of integers that increase or decrease in equal steps becomes an iota.
ir::Graph constant_masks(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
