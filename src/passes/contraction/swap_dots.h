#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Exchanges the operands of a product whose result only a transpose of its rows and columns reads, possibly through
// casts: the product then has the wanted order by itself. Gradients of matrices and of 1x1 filters have this form. A
// product with a constant operand keeps its order, in which kernels pack the constant.
ir::Graph swap_dots(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
