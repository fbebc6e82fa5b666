#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tests/fuzz/hostile/wire.h"

namespace heddle::fuzz {

// The messages of an ONNX file, so that an edit knows what it edits.
enum class OnnxKind : uint8_t {
  kModel,
  kGraph,
  kNode,
  kAttribute,
  kTensor,
  kSparse,
  kValueInfo,
  kType,
  kTensorType,
  kShape,
  kDimension,
  kSequence,  // and optional
  kFunction,
  kOpset,
  kEntry,  // of external data, of metadata
};
constexpr size_t kOnnxKinds = 15;

// Numbers of fields (onnx.proto).
namespace field {
constexpr uint64_t kModelGraph = 7, kModelOpset = 8, kModelFunction = 25;
constexpr uint64_t kGraphNode = 1, kGraphInitializer = 5, kGraphInput = 11, kGraphOutput = 12;
constexpr uint64_t kNodeInput = 1, kNodeOutput = 2, kNodeOp = 4, kNodeAttribute = 5, kNodeDomain = 7;
constexpr uint64_t kAttributeName = 1, kAttributeFloat = 2, kAttributeInt = 3, kAttributeString = 4;
constexpr uint64_t kAttributeGraph = 6, kAttributeFloats = 7, kAttributeInts = 8, kAttributeType = 20;
constexpr uint64_t kAttributeRef = 21;
constexpr uint64_t kTensorDim = 1, kTensorType = 2, kTensorName = 8, kTensorRaw = 9, kTensorExternal = 13;
constexpr uint64_t kTensorLocation = 14;
constexpr uint64_t kValueName = 1, kValueType = 2;
constexpr uint64_t kTypeTensor = 1, kTypeSequence = 4, kTypeSparse = 8, kTypeOptional = 9;
constexpr uint64_t kElemType = 1, kElemShape = 2;
constexpr uint64_t kShapeDim = 1, kDimValue = 1, kDimParam = 2;
constexpr uint64_t kFunctionName = 1, kFunctionInput = 4, kFunctionOutput = 5, kFunctionNode = 7;
constexpr uint64_t kFunctionOpset = 9, kFunctionDomain = 10;
constexpr uint64_t kOpsetDomain = 1, kOpsetVersion = 2;
constexpr uint64_t kEntryKey = 1, kEntryValue = 2;
}  // namespace field

// A ModelProto as a tree by its schema: packed numbers are fields of their own. Nothing where it is none.
std::optional<WireMessage> parse_onnx(std::string_view bytes);

// All messages of a model by kind, outer ones first.
using OnnxParts = std::array<std::vector<WireMessage*>, kOnnxKinds>;
OnnxParts collect_onnx(WireMessage& model);
// The same for what is in a message of another kind.
OnnxParts collect_onnx(WireMessage& message, OnnxKind kind);
inline std::vector<WireMessage*>& of(OnnxParts& parts, OnnxKind kind) {
  return parts[static_cast<size_t>(kind)];
}

WireField int_field(uint64_t number, uint64_t value);
WireField text_field(uint64_t number, std::string text);
WireField message_field(uint64_t number, WireMessage message);

WireField* first_field(WireMessage& message, uint64_t number);
std::vector<WireField*> all_fields(WireMessage& message, uint64_t number);
void remove_fields(WireMessage& message, uint64_t number);
// In place of the fields of this number.
void set_field(WireMessage& message, WireField field);
std::string text_of(WireMessage& message, uint64_t number);  // "" where there is none

}  // namespace heddle::fuzz
