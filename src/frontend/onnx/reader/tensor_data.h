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

// Turns TensorProtos into tensors. Data that lies aligned in the model's file or in an external file is borrowed.
class TensorLoader {
 public:
  // Of one tensor by itself, which has no external data. `owner` keeps the bytes alive that the proto views.
  explicit TensorLoader(std::shared_ptr<const void> owner) : owner_(std::move(owner)), folder_("") {}
  // Of the tensors of a model, with external data in `folder`. `budget`, which lives longer, pays for them.
  TensorLoader(const ModelProto& model, DataFolder folder, Budget& budget)
      : owner_(model.owner), folder_(std::move(folder)), locations_(external_locations(model)), budget_(&budget) {}

  // The same proto, whose address must not change, gives the same tensor again, without another copy. Throws
  // kMalformedModel (sizes that disagree), kMissingData (no data, no external file, a way out of the folder),
  // kUnsupportedType, kLimit. `where` names the tensor's place.
  Tensor load(const TensorProto& proto, const std::string& where);
  // A dense tensor, zero where the sparse one has no value.
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
  std::set<std::string> locations_;  // all that the identity of the model covers
  std::map<std::string, std::shared_ptr<const MappedFile>, std::less<>> files_;  // by location
  // By proto, with one map per type: a struct and its first member share an address.
  std::unordered_map<const TensorProto*, Tensor> dense_;
  std::unordered_map<const SparseTensorProto*, Tensor> sparse_;
  Budget* budget_ = nullptr;
};

// An ONNX TensorProto.DataType number as a dtype. Throws kUnsupportedType (complex numbers), kMalformedModel (unknown).
DType dtype_of(int64_t onnx_type, const std::string& where);

}  // namespace heddle::onnx
