#pragma once

#include "frontend/onnx/node_context.h"
#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {

// Lowers an operator so that only its inputs and results are f16 or bf16. The intermediate values of its decomposition
// are not values of the model, so they (squares and sums, for example) are f32 even if kernels store them. If the
// decomposition rounds intermediate values, the operator is lowered again with its inputs in f32. Products and
// convolutions keep the types of their operands. Elementwise chains on one tensor keep the tensor's type, because their
// values stay in registers.
void lower_wide(const OpHandler& handler, NodeContext& ctx);

}  // namespace heddle::onnx
