#include "frontend/onnx/reader/external_data.h"

#include <fcntl.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/check.h"
#include "base/interface/option.h"

namespace heddle::onnx {
namespace {

namespace fs = std::filesystem;

size_t parse_size(std::string_view text, std::string_view key, const std::string& where) {
  size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    fail(ErrorCode::kMalformedModel, where, fmt::format("external data: {} is '{}', not a number", key, text));
  }
  return value;
}

std::string_view location_of(const TensorProto& tensor) {
  std::string_view location;
  for (const auto& [key, value] : tensor.external_data) {
    if (key == "location") location = value;
  }
  return location;
}

// Graphs that are still to be visited.
class Walk {
 public:
  explicit Walk(const std::function<void(const TensorProto&)>& visit) : visit_(visit) {}

  void add(const GraphProto& graph) { waiting_.push_back(&graph); }
  void nodes(const std::vector<NodeProto>& list) {
    for (const NodeProto& node : list) attributes(node.attributes);
  }
  void attributes(const std::vector<AttributeProto>& list) {
    for (const AttributeProto& a : list) {
      if (a.t) visit_(*a.t);
      if (a.sparse) sparse(*a.sparse);
      if (a.g) add(*a.g);
    }
  }
  void run() {
    while (!waiting_.empty()) {
      const GraphProto& graph = *waiting_.back();
      waiting_.pop_back();
      for (const TensorProto& tensor : graph.initializers) visit_(tensor);
      for (const SparseTensorProto& tensor : graph.sparse_initializers) sparse(tensor);
      nodes(graph.nodes);
    }
  }

 private:
  void sparse(const SparseTensorProto& tensor) {
    visit_(tensor.values);
    visit_(tensor.indices);
  }

  const std::function<void(const TensorProto&)>& visit_;
  std::vector<const GraphProto*> waiting_;
};

}  // namespace

ExternalRef external_ref(const TensorProto& tensor, const std::string& where) {
  ExternalRef ref;
  ref.location = location_of(tensor);
  for (const auto& [key, value] : tensor.external_data) {
    if (key == "offset") ref.offset = parse_size(value, key, where);
    if (key == "length") ref.length = parse_size(value, key, where);
  }
  return ref;
}

void for_each_tensor(const ModelProto& model, const std::function<void(const TensorProto&)>& visit) {
  Walk walk(visit);
  walk.add(model.graph);
  for (const FunctionProto& function : model.functions) {
    walk.nodes(function.nodes);
    walk.attributes(function.attribute_defaults);
  }
  walk.run();
}

std::set<std::string> external_locations(const ModelProto& model) {
  std::set<std::string> locations;
  for_each_tensor(model, [&](const TensorProto& tensor) {
    if (tensor.external) locations.emplace(location_of(tensor));
  });
  return locations;
}

DataFolder DataFolder::of_model(const std::string& model_path, DataLinks links) {
  const size_t slash = model_path.rfind('/');
  DataFolder folder(slash == std::string::npos ? "" : model_path.substr(0, slash + 1), links);
  std::error_code error;
  if (!fs::is_symlink(model_path, error)) return folder;
  const fs::path real = fs::canonical(model_path, error);
  if (!error) folder.real_folder_ = real.parent_path().string();
  return folder;
}

std::string DataFolder::path_of(std::string_view location) const {
  const bool separate = !folder_.empty() && folder_.back() != '/';
  return fmt::format("{}{}{}", folder_, separate ? "/" : "", location);
}

// The file behind a link, as far as links may be followed; ELOOP where they may not.
int DataFolder::open_link(const std::string& path, Descriptor& file) const {
  if (links_ == DataLinks::kFollow) {
    file = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    return file.get() < 0 ? errno : 0;
  }
  if (real_folder_.empty()) return ELOOP;
  std::error_code error;
  const fs::path target = fs::canonical(path, error);
  if (error) return error.value();
  if (target.parent_path() != real_folder_) return ELOOP;
  return open_beneath(real_folder_, target.filename().string(), file);
}

Descriptor DataFolder::open(std::string_view location, const std::string& where) const {
  Descriptor file;
  int error = open_beneath(folder_, location, file);
  const std::string path = path_of(location);
  if (error == ELOOP) error = open_link(path, file);
  if (error == 0) return file;
  if (error == EXDEV) {
    fail(ErrorCode::kMissingData, where,
         fmt::format("the external data lies in '{}', which is not below the model's folder", location),
         "Put the data file beside the model and name it without '..' or a leading '/'");
  }
  if (error == ELOOP) {
    fail(ErrorCode::kMissingData, where,
         fmt::format("external data file {}: a symbolic link is on the way to it, which may lead anywhere", path),
         fmt::format("Put the file itself there, or pass {} if you trust the folder", option::external_data_links()));
  }
  fail(ErrorCode::kMissingData, where,
       fmt::format("external data file {}: opening the file failed: {}", path, std::strerror(error)),
       "Copy the data file to the model's folder");
}

}  // namespace heddle::onnx
