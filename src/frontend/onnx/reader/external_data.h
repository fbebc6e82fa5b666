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

// The location of a tensor's data: bytes [offset, offset + length) of a file beside the model.
struct ExternalRef {
  std::string_view location;
  size_t offset = 0;
  std::optional<size_t> length;  // empty: the number of bytes that the tensor needs
};

// Reads a tensor's ExternalRef. Throws kMalformedModel if an offset or length is not a number. `where` names the tensor
// in messages.
ExternalRef external_ref(const TensorProto& tensor, const std::string& where);

// Calls visit(tensor) for every tensor of a model. The tensors are the initialisers, the values and indices of sparse
// initialisers, and the tensors in attributes. Visits the main graph, nested graphs at any depth, and functions.
void for_each_tensor(const ModelProto& model, const std::function<void(const TensorProto&)>& visit);

// Returns the names of the files that hold data of a model's tensors. These files are part of the model's content, like
// the model file itself. Visits the same tensors and fields as the importer.
std::set<std::string> external_locations(const ModelProto& model);

enum class DataLinks : bool { kRefuse, kFollow };

// The folder of a model. No file name in the model may lead out of it by "..", by an absolute path or by a symbolic
// link. There is one exception. If the model path that the caller gave is itself a symbolic link, links to data files
// are followed into the folder of the model link's target. (Download caches that store contents under their hashes have
// such links.) DataLinks::kFollow follows all links.
class DataFolder {
 public:
  // `model_path`: the path that the caller gave, in which links are not resolved.
  static DataFolder of_model(const std::string& model_path, DataLinks links = DataLinks::kRefuse);
  explicit DataFolder(std::string folder, DataLinks links = DataLinks::kRefuse)
      : folder_(std::move(folder)), links_(links) {}

  // Opens a data file. Throws kMissingData with the location, the reason and the remedy. `where` names the tensor in
  // messages.
  Descriptor open(std::string_view location, const std::string& where) const;
  // Returns the path of the file, for messages.
  std::string path_of(std::string_view location) const;

 private:
  int open_link(const std::string& path, Descriptor& file) const;

  std::string folder_;
  std::string real_folder_;  // folder of the link target if the model's path is a link; else ""
  DataLinks links_;
};

}  // namespace heddle::onnx
