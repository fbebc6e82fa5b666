#pragma once

#include "frontend/onnx/node_context.h"
#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {

// Lowers an operator with f16 or bf16 inputs so that the intermediate values of its decomposition (squares and sums,
// for example) are f32, even if kernels store them. For this, first lowers the operator as it is. If this decomposition
// rounds intermediate values, lowers the operator again with its inputs converted to f32, and rounds the results. There
// are two exceptions. Products and convolutions keep the types of their operands. Elementwise chains on one tensor keep
// the tensor's type, because their values stay in registers.
void lower_wide(const OpHandler& handler, NodeContext& ctx);

}  // namespace heddle::onnx
