#pragma once

#include "frontend/onnx/importer.h"
#include "frontend/onnx/node_context.h"

namespace heddle::onnx {

// Returns the caller's custom operator (ImportOptions::operators) that implements the node's operator type; null if
// there is none.
const Operator* custom_operator(const ImportOptions& options, const NodeProto& node);

// Lowers the node to a call of the program that the custom operator returns. Throws kInvalidNode if an input or
// attribute of the node is text, a sequence or a graph, and if the node has an output that the program lacks. Errors
// that the operator throws are rethrown with this node as their location.
void lower_custom(const Operator& custom, NodeContext& ctx);

}  // namespace heddle::onnx
