#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// The most operands of one concatenation. Its kernel has a branch and an argument for each operand.
constexpr size_t kMostConcatParts = 64;

// Splits concatenations with more operands into nested concatenations.
ir::Graph split_concats(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
