#pragma once

#include <map>
#include <string>

#include "base/file.h"
#include "frontend/onnx/proto.h"
#include "heddle/tensor.h"

namespace heddle::onnx {

// Turns TensorProtos into tensors. Data that lies aligned in the model's file or in an external file is borrowed.
class TensorLoader {
 public:
  // `owner` keeps the bytes alive that the protos view; `folder` is where external data is looked for ("" where there
  // is none).
  TensorLoader(std::shared_ptr<const void> owner, std::string folder)
      : owner_(std::move(owner)), folder_(std::move(folder)) {}

  // Throws kMalformedModel (sizes that disagree), kMissingData (no data, no external file, a path out of the folder),
  // kUnsupportedType. `where` names the tensor's place.
  Tensor load(const TensorProto& proto, const std::string& where);
  // From now on a tensor that was loaded is kept and given again for the same proto, whose address must not change.
  void keep_tensors() { keeps_ = true; }
  // A dense tensor, zero where the sparse one has no value.
  Tensor load(const SparseTensorProto& proto, const std::string& where);

 private:
  struct Bytes {
    std::string_view view;
    std::shared_ptr<const void> owner;
  };
  Tensor load_new(const TensorProto& proto, const std::string& where);
  Bytes external_bytes(const TensorProto& proto, size_t expected, const std::string& where);

  std::shared_ptr<const void> owner_;
  std::string folder_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
  bool keeps_ = false;
  std::map<const TensorProto*, Tensor> kept_;
};

// An ONNX TensorProto.DataType number as a dtype. Throws kUnsupportedType (complex numbers), kMalformedModel (unknown).
DType dtype_of(int64_t onnx_type, const std::string& where);

}  // namespace heddle::onnx
