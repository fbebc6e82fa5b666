#include "driver/shapes/onnx_text.h"

#include <fmt/format.h>

#include "frontend/onnx/reader/tensor_data.h"

namespace heddle::driver {
namespace {

std::string element_text(int32_t type) {
  try {
    return std::string(to_string(onnx::dtype_of(type, "")));
  } catch (const Error&) {
    return fmt::format("type {}", type);
  }
}

}  // namespace

std::string extent_text(const onnx::Dimension& dimension) {
  if (dimension.value) return std::to_string(*dimension.value);
  return dimension.param.empty() ? "?" : std::string(dimension.param);
}

std::string type_text(const onnx::TypeProto& type) {
  using Kind = onnx::TypeProto::Kind;
  const auto inner = [&] { return type.element ? type_text(*type.element) : std::string("?"); };
  switch (type.kind) {
    case Kind::kTensor: {
      if (!type.shape) return element_text(type.elem_type) + "[...]";
      std::string extents;
      for (const onnx::Dimension& d : *type.shape) {
        if (!extents.empty()) extents += ',';
        extents += extent_text(d);
      }
      return fmt::format("{}[{}]", element_text(type.elem_type), extents);
    }
    case Kind::kSequence:
      return fmt::format("seq({})", inner());
    case Kind::kOptional:
      return fmt::format("optional({})", inner());
    case Kind::kMap:
      return "map";
    case Kind::kSparse:
      return "sparse tensor";
    case Kind::kNone:
      break;
  }
  return "?";
}

std::string operator_name(const onnx::NodeProto& node) {
  const std::string type(node.op_type);
  return node.domain.empty() ? type : fmt::format("{}.{}", node.domain, type);
}

}  // namespace heddle::driver
