#pragma once

#include <string>

#include "frontend/onnx/reader/proto.h"

namespace heddle::driver {

// The declared type in readable form: "f32[N,3,224,224]", "seq(f32[...])", or "type 14" for a type that Heddle lacks.
std::string type_text(const onnx::TypeProto& type);
// The extent of a dimension as text: "224", "N", or "?" if it is unknown.
std::string extent_text(const onnx::Dimension& dimension);
// The operator of a node, with its domain unless that is empty: "Conv", "com.microsoft.Attention".
std::string operator_name(const onnx::NodeProto& node);

}  // namespace heddle::driver
