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

// The place of a tensor's data according to the model: bytes [offset, offset + length) of a file beside the model.
struct ExternalRef {
  std::string_view location;
  size_t offset = 0;
  std::optional<size_t> length;  // empty: as many bytes as the tensor needs
};

// Throws kMalformedModel if an offset or length is not a number. `where` names the tensor.
ExternalRef external_ref(const TensorProto& tensor, const std::string& where);

// Calls visit(tensor) for every tensor of a model: initialisers, values and indices of sparse ones and attributes, in
// its graph, in the graphs inside it at any depth, and in its functions.
void for_each_tensor(const ModelProto& model, const std::function<void(const TensorProto&)>& visit);

// The files that the tensors of a model name; they are part of its content besides its own file. It visits the same
// tensors and fields as the importer.
std::set<std::string> external_locations(const ModelProto& model);

enum class DataLinks : bool { kRefuse, kFollow };

// The folder of a model. No name in the model may lead out of it: not by "..", an absolute path or a symbolic link. One
// kind of link is followed: the model path that the caller gave is itself a link, and both links lead into one folder.
// Download caches that store contents under their hashes have such links. DataLinks::kFollow follows all links.
class DataFolder {
 public:
  // `model_path`: as the caller gave it.
  static DataFolder of_model(const std::string& model_path, DataLinks links = DataLinks::kRefuse);
  explicit DataFolder(std::string folder, DataLinks links = DataLinks::kRefuse)
      : folder_(std::move(folder)), links_(links) {}

  // Throws kMissingData with the location, the reason and the remedy. `where` names the tensor.
  Descriptor open(std::string_view location, const std::string& where) const;
  // The path of the file, for messages.
  std::string path_of(std::string_view location) const;

 private:
  int open_link(const std::string& path, Descriptor& file) const;

  std::string folder_;
  std::string real_folder_;  // folder of the link target if the model's path is a link; else ""
  DataLinks links_;
};

}  // namespace heddle::onnx
