#pragma once

#include <protozero/pbf_writer.hpp>

#include "heddle/dtype.h"

// The field numbers of onnx.proto that the model zoo writes.
namespace heddle::zoo::onnx {

using Tag = protozero::pbf_tag_type;

struct Model {
  static constexpr Tag kIrVersion = 1, kProducer = 2, kGraph = 7, kOpsetImport = 8, kMetadata = 14;
};
struct OpsetId {
  static constexpr Tag kDomain = 1, kVersion = 2;
};
struct Graph {
  static constexpr Tag kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12;
};
struct Node {
  static constexpr Tag kInput = 1, kOutput = 2, kName = 3, kOpType = 4, kAttribute = 5;
};
struct Attribute {
  static constexpr Tag kName = 1, kFloat = 2, kInt = 3, kString = 4, kTensor = 5, kGraph = 6, kInts = 8, kType = 20;
  enum Type { kTypeFloat = 1, kTypeInt = 2, kTypeString = 3, kTypeTensor = 4, kTypeGraph = 5, kTypeInts = 7 };
};
struct Tensor {
  static constexpr Tag kDims = 1, kDataType = 2, kName = 8, kRawData = 9, kExternalData = 13, kDataLocation = 14;
  static constexpr int kLocationExternal = 1;
};
struct ValueInfo {
  static constexpr Tag kName = 1, kType = 2;
};
struct Type {
  static constexpr Tag kTensor = 1, kTensorElement = 1, kTensorShape = 2, kShapeDim = 1, kDimValue = 1;
};
struct StringPair {
  static constexpr Tag kKey = 1, kValue = 2;
};

// Returns the TensorProto.DataType number of a type that the zoo uses; 0 for other types.
constexpr int data_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 1;
    case DType::kF16:
      return 10;
    case DType::kBF16:
      return 16;
    case DType::kI32:
      return 6;
    case DType::kI64:
      return 7;
    case DType::kBool:
      return 9;
    default:
      return 0;
  }
}

}  // namespace heddle::zoo::onnx
