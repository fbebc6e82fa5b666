#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// The maximum number of operands of one concatenation. The concatenation's kernel has a branch and an argument for each
// operand.
constexpr size_t kMostConcatParts = 64;

// Splits concatenations with more than kMostConcatParts operands into nested concatenations.
ir::Graph split_concats(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
