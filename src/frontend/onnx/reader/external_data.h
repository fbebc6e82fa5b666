#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/file/beneath.h"
#include "frontend/onnx/reader/proto.h"

namespace heddle::onnx {

// Where a tensor says that its data lies: bytes [offset, offset + length) of a file beside the model.
struct ExternalRef {
  std::string_view location;
  size_t offset = 0;
  std::optional<size_t> length;  // empty: what the tensor needs
};

// Throws kMalformedModel where a number is none. `where` names the tensor.
ExternalRef external_ref(const TensorProto& tensor, const std::string& where);

// Calls visit(tensor) for every tensor of a model: initialisers, values and indices of sparse ones and attributes, in
// its graph, in the graphs inside it at any depth, and in its functions.
void for_each_tensor(const ModelProto& model, const std::function<void(const TensorProto&)>& visit);

// The files that the tensors of a model name: what its content consists of besides its own file. The same walk and the
// same reading of a tensor's fields as the importer's.
std::set<std::string> external_locations(const ModelProto& model);

enum class DataLinks : bool { kRefuse, kFollow };

// The folder of a model, out of which no name in the model leads: not by "..", not by an absolute path, not by a
// symbolic link. A link is followed where the path of the model that the caller gave is a link itself and both lead
// into one folder: so does a cache of downloads that keeps contents under their hashes. DataLinks::kFollow follows any.
class DataFolder {
 public:
  // `model_path`: as the caller gave it.
  static DataFolder of_model(const std::string& model_path, DataLinks links = DataLinks::kRefuse);
  explicit DataFolder(std::string folder, DataLinks links = DataLinks::kRefuse)
      : folder_(std::move(folder)), links_(links) {}

  // Throws kMissingData naming the location, why it cannot be read and the remedy. `where` names the tensor.
  Descriptor open(std::string_view location, const std::string& where) const;
  // The file for messages.
  std::string path_of(std::string_view location) const;

 private:
  int open_link(const std::string& path, Descriptor& file) const;

  std::string folder_;
  std::string real_folder_;  // of the file behind the model's path, where that is a link; else ""
  DataLinks links_;
};

}  // namespace heddle::onnx
