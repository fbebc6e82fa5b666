#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/dtype.h"

// The ONNX messages that the importer reads, decoded from the wire format (onnx.proto, IR version 13). Text and raw
// bytes are views into the file, which ModelProto::owner keeps alive. Text need not be valid UTF-8.
namespace heddle::onnx {

class Budget;
struct GraphProto;

struct TensorProto {
  std::string_view name;
  std::vector<int64_t> dims;
  int32_t data_type = 0;
  std::optional<std::string_view> raw_data;
  std::vector<float> float_data;
  std::vector<int32_t> int32_data;
  std::vector<int64_t> int64_data;
  std::vector<double> double_data;
  std::vector<uint64_t> uint64_data;
  std::vector<std::string_view> string_data;
  std::vector<std::pair<std::string_view, std::string_view>> external_data;
  bool external = false;
};

struct SparseTensorProto {
  TensorProto values, indices;
  std::vector<int64_t> dims;
};

struct Dimension {
  std::optional<int64_t> value;  // not negative
  std::string_view param;  // the symbol if `value` is empty; may itself be empty
};

struct TypeProto {
  enum class Kind : uint8_t { kNone, kTensor, kSequence, kOptional, kMap, kSparse };
  Kind kind = Kind::kNone;
  int32_t elem_type = 0;                        // tensors only
  std::optional<std::vector<Dimension>> shape;  // tensors only; empty if the rank is unknown
  std::shared_ptr<TypeProto> element;           // sequences and optionals only
};

struct ValueInfoProto {
  std::string_view name;
  TypeProto type;
};

struct AttributeProto {
  // AttributeProto.AttributeType of onnx.proto.
  enum class Type : uint8_t {
    kUndefined = 0,
    kFloat = 1,
    kInt = 2,
    kString = 3,
    kTensor = 4,
    kGraph = 5,
    kFloats = 6,
    kInts = 7,
    kStrings = 8,
    kTensors = 9,
    kGraphs = 10,
    kSparseTensor = 11,
    kSparseTensors = 12,
    kTypeProto = 13,
    kTypeProtos = 14,
  };
  std::string_view name;
  std::string_view ref_attr_name;  // in a function: the calling node's attribute that supplies the value
  Type type = Type::kUndefined;
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  std::shared_ptr<TensorProto> t;
  std::shared_ptr<GraphProto> g;
  std::shared_ptr<SparseTensorProto> sparse;
  std::shared_ptr<TypeProto> tp;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
};

struct NodeProto {
  std::string_view name, op_type, domain, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<AttributeProto> attributes;

  const AttributeProto* attribute(std::string_view attribute_name) const;
};

struct GraphProto {
  std::string_view name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<SparseTensorProto> sparse_initializers;
  std::vector<ValueInfoProto> inputs, outputs, value_infos;
};

struct OperatorSet {
  std::string_view domain;  // "" for both "" and "ai.onnx"
  int64_t version = 0;
};

struct FunctionProto {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs, attributes;
  std::vector<AttributeProto> attribute_defaults;
  std::vector<NodeProto> nodes;
  std::vector<OperatorSet> opset_imports;
};

struct ModelProto {
  int64_t ir_version = 0;
  std::vector<OperatorSet> opset_imports;
  GraphProto graph;
  std::vector<FunctionProto> functions;
  std::shared_ptr<const void> owner;  // owner of the bytes that the views point into
  std::string path;                   // for messages and to find external data; "" if read from memory
};

// Decodes a serialised ModelProto. `path` is the file that the bytes were read from. Throws kMalformedModel (not ONNX,
// truncated) or kLimit (a limit of `budget`).
ModelProto parse_model(std::string_view bytes, std::shared_ptr<const void> owner, std::string path, Budget& budget);
// parse_model() with the default limits.
ModelProto parse_model(std::string_view bytes, std::shared_ptr<const void> owner, std::string path);

// Decodes a serialised TensorProto, such as a .pb file of the ONNX node tests. Throws kMalformedModel.
TensorProto parse_tensor(std::string_view bytes);

// Returns the canonical spelling of a domain: "" for the default domain, which models write as "ai.onnx" or "".
std::string_view canonical_domain(std::string_view domain);

}  // namespace heddle::onnx
