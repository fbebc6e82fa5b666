#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Operands of one concatenation: each is a branch of its kernel, and an argument.
constexpr size_t kMostConcatParts = 64;

// Concatenations of more parts as concatenations of concatenations.
ir::Graph split_concats(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
