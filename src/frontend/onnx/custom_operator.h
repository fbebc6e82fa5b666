#pragma once

#include "frontend/onnx/importer.h"
#include "frontend/onnx/node_context.h"

namespace heddle::onnx {

// What the caller has for nodes like this one (ImportOptions::operators); null: nothing.
const Operator* custom_operator(const ImportOptions& options, const NodeProto& node);

// Makes the node a call of the program that the operator gives. Throws kInvalidNode for text, sequences and graphs
// among its inputs and attributes, and for outputs that the program lacks; what the operator throws, at this node.
void lower_custom(const Operator& custom, NodeContext& ctx);

}  // namespace heddle::onnx
