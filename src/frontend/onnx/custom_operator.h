#pragma once

#include "frontend/onnx/importer.h"
#include "frontend/onnx/node_context.h"

namespace heddle::onnx {

// The caller's operator for nodes like this one (ImportOptions::operators); null if there is none.
const Operator* custom_operator(const ImportOptions& options, const NodeProto& node);

// Lowers the node to a call of the program that the operator returns. Throws kInvalidNode for text, sequences and
// graphs among its inputs and attributes, and for outputs that the program lacks. Errors of the operator are thrown
// with this node as their place.
void lower_custom(const Operator& custom, NodeContext& ctx);

}  // namespace heddle::onnx
