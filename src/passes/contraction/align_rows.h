#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Gives operands of large products rows of whole 16 bytes, which tensor cores load at once. A vocabulary of 50,257
// words is an example. Without this, each product copies such an operand into aligned rows for itself. Here the kernel
// that computes the operand writes its rows so; an operand that several products read is copied once.
ir::Graph align_rows(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
