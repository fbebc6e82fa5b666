#include "ort/graph/model_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <protozero/pbf_writer.hpp>
#include <unordered_set>
#include <vector>

#include "base/check.h"

namespace heddle::ort {
namespace {

using protozero::pbf_writer;

// Numbers of fields in onnx.proto.
namespace model {
enum : uint32_t { kIrVersion = 1, kProducer = 2, kGraph = 7, kOpset = 8 };
}
namespace opset {
enum : uint32_t { kDomain = 1, kVersion = 2 };
}
namespace graph_field {
enum : uint32_t { kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12 };
}
namespace node_field {
enum : uint32_t { kInput = 1, kOutput = 2, kName = 3, kOpType = 4, kAttribute = 5, kDomain = 7 };
}
namespace attribute {
enum : uint32_t { kName = 1, kF = 2, kI = 3, kS = 4, kT = 5, kG = 6, kFloats = 7, kInts = 8, kStrings = 9, kType = 20 };
enum Type : int32_t {
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloatList = 6,
  kIntList = 7,
  kStringList = 8
};
}  // namespace attribute
namespace tensor {
enum : uint32_t { kDims = 1, kDataType = 2, kName = 8, kRawData = 9, kExternal = 13, kLocation = 14 };
}
namespace entry {
enum : uint32_t { kKey = 1, kValue = 2 };
}
namespace value_info {
enum : uint32_t {
  kName = 1,
  kType = 2,
  kTensorType = 1,
  kElemType = 1,
  kShape = 2,
  kDim = 1,
  kDimValue = 1,
  kDimParam = 2
};
}

constexpr int64_t kIrVersion = 10;
// Constants up to these sizes stand in the model itself, where the importer finds numbers that shapes depend on.
constexpr size_t kInline = 1024, kInlineIntegers = 65536;
// Files up to this size are identified by their whole content (driver/compile/plan_cache.h).
constexpr uint64_t kMostInFile = uint64_t{1} << 30;
constexpr size_t kAlignment = 64;

class Writer {
 public:
  Writer(const Runtime& runtime, const Graph& graph, NodeNames names, const PlaceWeight& place)
      : runtime_(runtime), graph_(graph), names_(names), place_(place) {}

  void write(pbf_writer& to, const Region& region) {
    to.add_string(graph_field::kName, graph_.name.empty() ? "graph" : graph_.name);
    for (const size_t node : region.nodes) {
      pbf_writer message(to, graph_field::kNode);
      write_node(message, graph_, graph_.nodes[node], node);
    }
    std::unordered_set<size_t> written;
    for (const size_t node : region.nodes) {
      for (const auto* const list : {&graph_.nodes[node].inputs, &graph_.nodes[node].captured}) {
        for (const size_t value : *list)
          write_constant(to, graph_, value, written, reader_of(graph_.nodes[node], node));
      }
    }
    for (const size_t value : region.inputs) write_port(to, graph_field::kInput, graph_.values[value]);
    for (const size_t value : region.outputs) write_port(to, graph_field::kOutput, graph_.values[value]);
  }

 private:
  std::string name_of(const GraphNode& node, size_t index) const {
    return names_ == NodeNames::kOwn ? node.name : fmt::format("n{}", index);
  }
  // For errors. index: that of the region's node that contains it.
  std::string reader_of(const GraphNode& node, size_t index) const {
    return fmt::format("node '{}' ({})", name_of(node, index), node.op_type);
  }

  // A body of `node`, which the region's node of number `index` contains. What it captures stands in the graphs around
  // it.
  void write_body(pbf_writer& to, const Graph& body, const GraphNode& node, size_t index) {
    to.add_string(graph_field::kName, body.name.empty() ? "body" : body.name);
    for (const GraphNode& inner : body.nodes) {
      pbf_writer message(to, graph_field::kNode);
      write_node(message, body, inner, index);
    }
    std::unordered_set<size_t> written;
    const auto write_constants = [&](const GraphNode& user, const std::vector<size_t>& values) {
      for (const size_t value : values) {
        if (value == kNone || body.values[value].is_outer) continue;
        write_constant(to, body, value, written, reader_of(user, index));
      }
    };
    for (const GraphNode& inner : body.nodes) {
      write_constants(inner, inner.inputs);
      write_constants(inner, inner.captured);
    }
    write_constants(node, body.outputs);
    for (const size_t value : body.inputs) write_body_port(to, graph_field::kInput, body.values[value]);
    for (const size_t value : body.outputs) write_body_port(to, graph_field::kOutput, body.values[value]);
  }

  // index: that of the region's node that contains it.
  void write_node(pbf_writer& to, const Graph& graph, const GraphNode& node, size_t index) {
    const auto add_names = [&](uint32_t field, const std::vector<size_t>& values) {
      for (const size_t value : values) to.add_string(field, value == kNone ? "" : graph.values[value].name);
    };
    add_names(node_field::kInput, node.inputs);
    add_names(node_field::kOutput, node.outputs);
    to.add_string(node_field::kName, name_of(node, index));
    to.add_string(node_field::kOpType, node.op_type);
    if (!node.domain.empty()) to.add_string(node_field::kDomain, node.domain);
    std::vector<const OrtOpAttr*> attributes(runtime_.get<size_t>(api::kNodeGetNumAttributes, node.node));
    if (!attributes.empty()) {
      runtime_.check(runtime_.api()(api::kNodeGetAttributes, node.node, attributes.data(), attributes.size()));
    }
    for (const OrtOpAttr* const each : attributes) write_attribute(to, node, each, reader_of(node, index));
    for (const GraphBody& body : node.bodies) {
      pbf_writer message(to, node_field::kAttribute);
      message.add_string(attribute::kName, body.attribute);
      message.add_int32(attribute::kType, attribute::kGraph);
      pbf_writer content(message, attribute::kG);
      write_body(content, *body.graph, node, index);
    }
  }

  template <typename T>
  std::vector<T> list_of(const OrtOpAttr* handle, AttributeType type) const {
    const std::string content = attribute_content(runtime_, handle, type);
    std::vector<T> list(content.size() / sizeof(T));
    content.copy(reinterpret_cast<char*>(list.data()), list.size() * sizeof(T));
    return list;
  }

  void write_attribute(pbf_writer& to, const GraphNode& node, const OrtOpAttr* handle, const std::string& reader) {
    const std::string name = runtime_.get<const char*>(api::kOpAttrGetName, handle);
    const auto is_this = [&](const GraphBody& body) { return body.attribute == name; };
    if (std::any_of(node.bodies.begin(), node.bodies.end(), is_this)) return;
    const auto type = runtime_.get<AttributeType>(api::kOpAttrGetType, handle);
    pbf_writer message(to, node_field::kAttribute);
    message.add_string(attribute::kName, name);
    switch (type) {
      case AttributeType::kInt:
        message.add_int64(attribute::kI, list_of<int64_t>(handle, type).at(0));
        message.add_int32(attribute::kType, attribute::kInt);
        return;
      case AttributeType::kInts:
        for (const int64_t i : list_of<int64_t>(handle, type)) message.add_int64(attribute::kInts, i);
        message.add_int32(attribute::kType, attribute::kIntList);
        return;
      case AttributeType::kFloat:
        message.add_float(attribute::kF, list_of<float>(handle, type).at(0));
        message.add_int32(attribute::kType, attribute::kFloat);
        return;
      case AttributeType::kFloats:
        for (const float f : list_of<float>(handle, type)) message.add_float(attribute::kFloats, f);
        message.add_int32(attribute::kType, attribute::kFloatList);
        return;
      case AttributeType::kString:
        message.add_string(attribute::kS, attribute_content(runtime_, handle, type));
        message.add_int32(attribute::kType, attribute::kString);
        return;
      case AttributeType::kStrings: {
        const std::string content = attribute_content(runtime_, handle, type);
        for (size_t at = 0; at < content.size(); at = content.find('\0', at) + 1) {
          message.add_string(attribute::kStrings, content.c_str() + at);
        }
        message.add_int32(attribute::kType, attribute::kStringList);
        return;
      }
      case AttributeType::kTensor: {
        auto* const value = runtime_.get<OrtValue*>(api::kOpAttrGetTensorAttributeAsOrtValue, handle);
        const std::shared_ptr<OrtValue> owner(value, [&](OrtValue* v) { runtime_.api()(api::kReleaseValue, v); });
        pbf_writer tensor(message, attribute::kT);
        write_tensor(tensor, "", value, reader);
        tensor.commit();
        message.add_int32(attribute::kType, attribute::kTensor);
        return;
      }
      default:
        fail(ErrorCode::kUnsupportedType, reader,
             fmt::format("its attribute {} has a type that is not supported", name));
    }
  }

  // reader: the node that reads it, for errors.
  void write_constant(pbf_writer& to, const Graph& graph, size_t index, std::unordered_set<size_t>& written,
                      const std::string& reader) {
    if (index == kNone || !graph.values[index].is_constant || !written.insert(index).second) return;
    const GraphValue& value = graph.values[index];
    const auto* const content = runtime_.get<const OrtValue*>(api::kValueInfoGetInitializerValue, value.info);
    if (content == nullptr) {
      fail(ErrorCode::kMissingData, reader,
           fmt::format("ONNX Runtime does not give the data of initializer '{}'", value.name));
    }
    pbf_writer tensor(to, graph_field::kInitializer);
    write_tensor(tensor, value.name, content, reader);
  }

  void write_tensor(pbf_writer& to, const std::string& name, const OrtValue* value, const std::string& reader) {
    int element = 0;
    const int64_t* extents = nullptr;
    size_t rank = 0;
    runtime_.check(runtime_.api()(api::kGetTensorElementTypeAndShapeDataReference, value, &element, &extents, &rank));
    for (size_t i = 0; i < rank; ++i) to.add_int64(tensor::kDims, extents[i]);
    const std::optional<DType> dtype = dtype_of(element);
    if (!dtype || *dtype == DType::kString) {
      fail(ErrorCode::kUnsupportedType, reader,
           name.empty() ? "the element type of an attribute is not supported"
                        : fmt::format("the element type of initializer '{}' is not supported", name));
    }
    to.add_int32(tensor::kDataType, onnx_type_of(element));
    if (!name.empty()) to.add_string(tensor::kName, name);
    const auto bytes = runtime_.get<size_t>(api::kGetTensorSizeInBytes, value);
    const auto* const data = bytes == 0 ? nullptr : runtime_.get<const void*>(api::kGetTensorData, value);
    if (name.empty() || bytes <= (is_int(*dtype) ? kInlineIntegers : kInline)) {
      to.add_bytes(tensor::kRawData, static_cast<const char*>(data), bytes);
      return;
    }
    const WeightPlace place = place_(data, bytes);
    const auto add = [&](const char* key, const std::string& text) {
      pbf_writer message(to, tensor::kExternal);
      message.add_string(entry::kKey, key);
      message.add_string(entry::kValue, text);
    };
    add("location", place.file);
    add("offset", std::to_string(place.offset));
    add("length", std::to_string(bytes));
    to.add_int32(tensor::kLocation, 1);
  }

  // Types in a body follow from the values that it is given.
  static void write_body_port(pbf_writer& to, uint32_t field, const GraphValue& value) {
    pbf_writer port(to, field);
    port.add_string(value_info::kName, value.name);
  }

  static void write_port(pbf_writer& to, uint32_t field, const GraphValue& value) {
    pbf_writer port(to, field);
    port.add_string(value_info::kName, value.name);
    pbf_writer type(port, value_info::kType);
    pbf_writer tensor_type(type, value_info::kTensorType);
    tensor_type.add_int32(value_info::kElemType, onnx_type_of(value.element));
    if (!value.has_shape || has_inferred_shape(value)) return;
    // A pbf_writer leaves out a message without content, but an open extent is one, and so is the shape of a scalar.
    std::string shape;
    for (size_t i = 0; i < value.extents.size(); ++i) {
      std::string dim;
      if (value.extents[i] >= 0) {
        pbf_writer(dim).add_int64(value_info::kDimValue, value.extents[i]);
      } else if (!value.symbols[i].empty()) {
        pbf_writer(dim).add_string(value_info::kDimParam, value.symbols[i]);
      }
      pbf_writer(shape).add_message(value_info::kDim, dim);
    }
    tensor_type.add_message(value_info::kShape, shape);
  }

  const Runtime& runtime_;
  const Graph& graph_;
  NodeNames names_;
  const PlaceWeight& place_;
};

// Appends weights to files "weights0", "weights1", ... of a folder.
class WeightFiles {
 public:
  explicit WeightFiles(const std::string& folder) : folder_(folder) {}

  WeightPlace add(const void* data, size_t bytes) {
    uint64_t offset = (end_ + kAlignment - 1) / kAlignment * kAlignment;
    if (file_.get() < 0 || (offset > 0 && offset + bytes > kMostInFile)) {
      ++number_;
      offset = 0;
      file_ = Descriptor(::open(path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
      if (file_.get() < 0) fail_errno(path(), "writing the file", errno, "Set TMPDIR to a folder that can be written");
    }
    for (size_t done = 0; done < bytes;) {
      const ssize_t wrote =
          ::pwrite(file_.get(), static_cast<const char*>(data) + done, bytes - done, static_cast<off_t>(offset + done));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) fail_errno(path(), "writing the file", errno, "Set TMPDIR to a folder with more space");
      done += static_cast<size_t>(wrote);
    }
    end_ = offset + bytes;
    return {name(), offset};
  }

 private:
  std::string name() const { return fmt::format("weights{}", number_); }
  std::string path() const { return folder_ + "/" + name(); }

  std::string folder_;
  Descriptor file_;
  int number_ = -1;
  uint64_t end_ = 0;
};

}  // namespace

std::string write_model(const Runtime& runtime, const Graph& graph, const Region& region, NodeNames names,
                        const PlaceWeight& place) {
  std::string bytes;
  pbf_writer to(bytes);
  to.add_int64(model::kIrVersion, kIrVersion);
  to.add_string(model::kProducer, "ONNX Runtime");
  {
    pbf_writer message(to, model::kGraph);
    Writer(runtime, graph, names, place).write(message, region);
  }
  for (const auto& [domain, version] : graph.opsets) {
    pbf_writer message(to, model::kOpset);
    message.add_string(opset::kDomain, domain);
    message.add_int64(opset::kVersion, version);
  }
  return bytes;
}

ModelFolder::ModelFolder(const Runtime& runtime, const Graph& graph, const Region& region) : folder_("heddle-ort") {
  WeightFiles files(folder_.path());
  const std::string bytes = write_model(runtime, graph, region, NodeNames::kOwn,
                                        [&](const void* data, size_t size) { return files.add(data, size); });
  write_file(path(), bytes, Sync::kNo);
}

}  // namespace heddle::ort
