#pragma once

#include "frontend/onnx/node_context.h"
#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {

// Lowers an operator so that only its inputs and results are f16 or bf16. Intermediate values of its decomposition are
// not values of the model, so squares and sums are f32 even if kernels store them. An operator whose decomposition
// rounds is lowered again with its inputs in f32. Products and convolutions keep the types of their operands.
// Elementwise chains on one tensor keep its type, since they stay in registers.
void lower_wide(const OpHandler& handler, NodeContext& ctx);

}  // namespace heddle::onnx
