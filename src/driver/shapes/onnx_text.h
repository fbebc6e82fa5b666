#pragma once

#include <string>

#include "frontend/onnx/reader/proto.h"

namespace heddle::driver {

// A declared type as text for people: "f32[N,3,224,224]", "seq(f32[...])", "type 14" for a type that Heddle lacks.
std::string type_text(const onnx::TypeProto& type);
// "224", "N", "?".
std::string extent_text(const onnx::Dimension& dimension);
// "Conv", "com.microsoft.Attention".
std::string operator_name(const onnx::NodeProto& node);

}  // namespace heddle::driver
