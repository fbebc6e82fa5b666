#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// For a GPU: a kernel that reads several values that another kernel computed element by element gets a copy of their
// computation if the operands take less memory traffic than the values. Examples are the gradients of activations: one
// kernel would compute tanh(x) and 1 - tanh(x)^2 with the activation, and store them for the kernel of the gradient,
// which can compute them from x.
ir::Graph recompute_boundaries(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
