#pragma once

#include "frontend/onnx/node_context.h"
#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {

// Lowers an operator so that f16 and bf16 hold nothing but its inputs and results. What a decomposition computes
// between them is no value of the model: a square or a sum has f32, wherever kernels store it. An operator that rounds
// inside of what it emits is lowered again, on inputs in f32. Products and convolutions keep their operands, and what
// one tensor goes through element by element keeps its type, since it stays in registers.
void lower_wide(const OpHandler& handler, NodeContext& ctx);

}  // namespace heddle::onnx
