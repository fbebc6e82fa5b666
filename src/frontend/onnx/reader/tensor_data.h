#pragma once

#include <map>
#include <string>
#include <unordered_map>

#include "base/file/file.h"
#include "frontend/onnx/reader/budget.h"
#include "frontend/onnx/reader/external_data.h"
#include "frontend/onnx/reader/proto.h"
#include "heddle/tensor.h"

namespace heddle::onnx {

// Turns TensorProtos into tensors. If the data is aligned in the model's file or in an external file, the tensor
// borrows it.
class TensorLoader {
 public:
  // For a single tensor without external data. `owner` keeps alive the bytes that the proto refers to.
  explicit TensorLoader(std::shared_ptr<const void> owner) : owner_(std::move(owner)), folder_("") {}
  // For the tensors of a model, with external data in `folder`. The tensors' bytes are charged to `budget`, which must
  // outlive this object.
  TensorLoader(const ModelProto& model, DataFolder folder, Budget& budget)
      : owner_(model.owner), folder_(std::move(folder)), locations_(external_locations(model)), budget_(&budget) {}

  // Loads a proto. Each proto is loaded once; it is identified by its address, which must not change. Throws
  // kMalformedModel (sizes that disagree), kMissingData (no data, no external file, a path that leaves the folder),
  // kUnsupportedType and kLimit. `where` names the tensor in error messages.
  Tensor load(const TensorProto& proto, const std::string& where);
  // Returns a dense tensor, with zeros for the values that the sparse tensor omits.
  Tensor load(const SparseTensorProto& proto, const std::string& where);

 private:
  struct Bytes {
    std::string_view view;
    std::shared_ptr<const void> owner;
  };
  void take_bytes(DType type, int64_t count, const std::string& where);
  Tensor load_new(const TensorProto& proto, const std::string& where);
  Tensor load_new(const SparseTensorProto& proto, const std::string& where);
  template <typename Proto>
  Tensor load_once(std::unordered_map<const Proto*, Tensor>& loaded, const Proto& proto, const std::string& where);
  Bytes external_bytes(const TensorProto& proto, size_t expected, const std::string& where);

  std::shared_ptr<const void> owner_;
  DataFolder folder_;
  std::set<std::string> locations_;  // every location that is part of the model's identity
  std::map<std::string, std::shared_ptr<const MappedFile>, std::less<>> files_;  // by location
  // The loaded tensors by proto. Each type has its own map, because a struct and its first member share an address.
  std::unordered_map<const TensorProto*, Tensor> dense_;
  std::unordered_map<const SparseTensorProto*, Tensor> sparse_;
  Budget* budget_ = nullptr;
};

// Converts an ONNX TensorProto.DataType number to a dtype. Throws kUnsupportedType (complex numbers) or kMalformedModel
// (unknown number).
DType dtype_of(int64_t onnx_type, const std::string& where);

}  // namespace heddle::onnx
