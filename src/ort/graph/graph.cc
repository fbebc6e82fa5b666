#include "ort/graph/graph.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>

namespace heddle::ort {
namespace {

struct ElementType {
  int element, onnx;
  DType dtype;
};

// The two lists of types agree but for the last three of ONNX Runtime's.
constexpr std::array kTypes = {
    ElementType{1, 1, DType::kF32},      ElementType{2, 2, DType::kU8},
    ElementType{3, 3, DType::kI8},       ElementType{4, 4, DType::kU16},
    ElementType{5, 5, DType::kI16},      ElementType{6, 6, DType::kI32},
    ElementType{7, 7, DType::kI64},      ElementType{8, 8, DType::kString},
    ElementType{9, 9, DType::kBool},     ElementType{10, 10, DType::kF16},
    ElementType{11, 11, DType::kF64},    ElementType{12, 12, DType::kU32},
    ElementType{13, 13, DType::kU64},    ElementType{16, 16, DType::kBF16},
    ElementType{17, 17, DType::kF8E4M3}, ElementType{18, 18, DType::kF8E4M3Fnuz},
    ElementType{19, 19, DType::kF8E5M2}, ElementType{20, 20, DType::kF8E5M2Fnuz},
    ElementType{21, 21, DType::kU4},     ElementType{22, 22, DType::kI4},
    ElementType{23, 23, DType::kF4E2M1}, ElementType{24, 25, DType::kU2},
    ElementType{25, 26, DType::kI2},     ElementType{26, 24, DType::kF8E8M0},
};

const ElementType* find_type(int element) {
  const auto found = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& t) { return t.element == element; });
  return found == kTypes.end() ? nullptr : &*found;
}

using Values = std::vector<const OrtValueInfo*>;

// The values that a node or a graph lists.
template <typename Owner>
Values values_of(const Runtime& runtime, const Owner* owner, Entry<OrtStatus*(const Owner*, size_t*)> count,
                 Entry<OrtStatus*(const Owner*, const OrtValueInfo**, size_t)> list) {
  Values values(runtime.get<size_t>(count, owner));
  if (!values.empty()) runtime.check(runtime.api()(list, owner, values.data(), values.size()));
  return values;
}

Values inputs_of(const Runtime& runtime, const OrtNode* node) {
  return values_of(runtime, node, api::kNodeGetNumInputs, api::kNodeGetInputs);
}

Values outputs_of(const Runtime& runtime, const OrtNode* node) {
  return values_of(runtime, node, api::kNodeGetNumOutputs, api::kNodeGetOutputs);
}

std::vector<std::string> names_of(const Runtime& runtime, const Values& values) {
  std::vector<std::string> names;
  for (const OrtValueInfo* const value : values) {
    if (value != nullptr) names.emplace_back(runtime.get<const char*>(api::kGetValueInfoName, value));
  }
  return names;
}

void read_type(const Runtime& runtime, GraphValue& value) {
  const auto* const type = runtime.get<const OrtTypeInfo*>(api::kGetValueInfoTypeInfo, value.info);
  if (type == nullptr || runtime.get<ValueKind>(api::kGetOnnxTypeFromTypeInfo, type) != ValueKind::kTensor) return;
  const auto* const tensor = runtime.get<const OrtTensorTypeAndShapeInfo*>(api::kCastTypeInfoToTensorInfo, type);
  if (tensor == nullptr) return;
  value.element = runtime.get<int>(api::kGetTensorElementType, tensor);
  value.has_shape = runtime.api()(api::kTensorTypeAndShapeHasShape, tensor);
  const auto rank = runtime.get<size_t>(api::kGetDimensionsCount, tensor);
  if (!value.has_shape || rank == 0) return;
  value.extents.resize(rank);
  runtime.check(runtime.api()(api::kGetDimensions, tensor, value.extents.data(), rank));
  std::vector<const char*> symbols(rank, nullptr);
  runtime.check(runtime.api()(api::kGetSymbolicDimensions, tensor, symbols.data(), rank));
  for (const char* const symbol : symbols) value.symbols.emplace_back(symbol == nullptr ? "" : symbol);
}

const OrtOpAttr* find_attribute(const Runtime& runtime, const OrtNode* node, const char* name) {
  const OrtOpAttr* attribute = nullptr;
  OrtStatus* const status = runtime.api()(api::kNodeGetAttributeByName, node, name, &attribute);
  if (status == nullptr) return attribute;
  runtime.api()(api::kReleaseStatus, status);  // there is none
  return nullptr;
}

class Reader {
 public:
  explicit Reader(const Runtime& runtime) : runtime_(runtime) {}

  void add(const OrtNode* handle) {
    GraphNode node;
    node.node = handle;
    node.name = runtime_.get<const char*>(api::kNodeGetName, handle);
    node.op_type = runtime_.get<const char*>(api::kNodeGetOperatorType, handle);
    node.domain = runtime_.get<const char*>(api::kNodeGetDomain, handle);
    node.bodies = bodies_of(handle);
    const auto* const provider = runtime_.get<const char*>(api::kNodeGetEpName, handle);
    node.is_assigned = provider != nullptr && *provider != '\0';
    node.inputs = indices(inputs_of(runtime_, handle));
    node.captured = indices(values_of(runtime_, handle, api::kNodeGetNumImplicitInputs, api::kNodeGetImplicitInputs));
    node.outputs = indices(outputs_of(runtime_, handle));
    const size_t index = graph_.nodes.size();
    for (const auto* const list : {&node.inputs, &node.captured}) {
      for (const size_t value : *list) {
        if (value == kNone) continue;
        std::vector<size_t>& uses = graph_.uses[value];
        if (uses.empty() || uses.back() != index) uses.push_back(index);
      }
    }
    for (const size_t value : node.outputs) {
      if (value == kNone) continue;
      graph_.producers[value] = index;
      graph_.values[value].is_inferred = true;
    }
    graph_.nodes.push_back(std::move(node));
  }

  void add_ports(const OrtGraph* handle) {
    graph_.inputs = indices(values_of(runtime_, handle, api::kGraphGetNumInputs, api::kGraphGetInputs));
    graph_.outputs = indices(values_of(runtime_, handle, api::kGraphGetNumOutputs, api::kGraphGetOutputs));
  }

  Graph take() { return std::move(graph_); }

 private:
  std::vector<GraphBody> bodies_of(const OrtNode* handle) const {
    const auto count = runtime_.get<size_t>(api::kNodeGetNumSubgraphs, handle);
    if (count == 0) return {};
    std::vector<const OrtGraph*> graphs(count);
    std::vector<const char*> attributes(count);
    runtime_.check(runtime_.api()(api::kNodeGetSubgraphs, handle, graphs.data(), count, attributes.data()));
    std::vector<GraphBody> bodies;
    for (size_t i = 0; i < count; ++i) {
      bodies.push_back({attributes[i], std::make_shared<const Graph>(read_graph(runtime_, graphs[i]))});
    }
    return bodies;
  }

  std::vector<size_t> indices(const Values& infos) {
    std::vector<size_t> result;
    for (const OrtValueInfo* const info : infos) result.push_back(info == nullptr ? kNone : index_of(info));
    return result;
  }

  size_t index_of(const OrtValueInfo* info) {
    std::string name = runtime_.get<const char*>(api::kGetValueInfoName, info);
    if (name.empty()) return kNone;
    const auto [place, is_new] = places_.emplace(name, graph_.values.size());
    if (!is_new) return place->second;
    GraphValue value;
    value.name = std::move(name);
    value.info = info;
    read_type(runtime_, value);
    value.is_constant = runtime_.get<bool>(api::kValueInfoIsConstantInitializer, info);
    value.is_outer = runtime_.get<bool>(api::kValueInfoIsFromOuterScope, info);
    value.is_inferred = !value.is_constant && value.is_outer;
    value.is_output = runtime_.get<bool>(api::kValueInfoIsGraphOutput, info);
    graph_.values.push_back(std::move(value));
    graph_.producers.push_back(kNone);
    graph_.uses.emplace_back();
    return place->second;
  }

  const Runtime& runtime_;
  Graph graph_;
  std::unordered_map<std::string, size_t> places_;
};

}  // namespace

int onnx_type_of(int element) {
  const ElementType* const type = find_type(element);
  return type == nullptr ? 0 : type->onnx;
}

std::optional<DType> dtype_of(int element) {
  const ElementType* const type = find_type(element);
  return type == nullptr ? std::nullopt : std::optional(type->dtype);
}

Graph read_graph(const Runtime& runtime, const OrtGraph* graph) {
  Reader reader(runtime);
  std::vector<const OrtNode*> nodes(runtime.get<size_t>(api::kGraphGetNumNodes, graph));
  if (!nodes.empty()) runtime.check(runtime.api()(api::kGraphGetNodes, graph, nodes.data(), nodes.size()));
  for (const OrtNode* const node : nodes) reader.add(node);
  reader.add_ports(graph);
  Graph result = reader.take();
  result.name = runtime.get<const char*>(api::kGraphGetName, graph);
  const auto* const path = runtime.get<const char*>(api::kGraphGetModelPath, graph);
  result.path = path == nullptr ? "" : path;
  const auto count = runtime.get<size_t>(api::kGraphGetNumOperatorSets, graph);
  std::vector<const char*> domains(count);
  std::vector<int64_t> versions(count);
  runtime.check(runtime.api()(api::kGraphGetOperatorSets, graph, domains.data(), versions.data(), count));
  for (size_t i = 0; i < count; ++i) result.opsets.emplace_back(domains[i], versions[i]);
  return result;
}

std::optional<Graph> read_loop(const Runtime& runtime, const OrtGraph* handle, const Graph& body) {
  const auto* const node = runtime.get<const OrtNode*>(api::kGraphGetParentNode, handle);
  if (node == nullptr) return std::nullopt;
  const std::string_view kind = runtime.get<const char*>(api::kNodeGetOperatorType, node);
  if (kind != "Loop" && kind != "Scan") return std::nullopt;
  Reader reader(runtime);
  reader.add(node);
  Graph loop = reader.take();
  loop.opsets = body.opsets;
  // ONNX Runtime gives the node without its bodies, and does not say where its values come from and go to.
  loop.nodes[0].bodies = {{"body", std::make_shared<const Graph>(body)}};
  // The body knows which of the values that it captures are constants.
  std::unordered_map<std::string_view, const GraphValue*> captured;
  for (const GraphValue& value : body.values) {
    if (value.is_outer) captured.emplace(value.name, &value);
  }
  for (GraphValue& value : loop.values) {
    if (const auto found = captured.find(value.name); found != captured.end()) value = *found->second;
    value.is_inferred = !value.is_constant;
  }
  for (const size_t value : loop.nodes[0].outputs) {
    if (value != kNone) loop.values[value].is_output = true;
  }
  return loop;
}

std::vector<std::string> input_names(const Runtime& runtime, const OrtNode* node) {
  return names_of(runtime, inputs_of(runtime, node));
}

std::vector<std::string> output_names(const Runtime& runtime, const OrtNode* node) {
  return names_of(runtime, outputs_of(runtime, node));
}

std::string attribute_content(const Runtime& runtime, const OrtOpAttr* attribute, AttributeType type) {
  size_t bytes = 0;
  OrtStatus* const status = runtime.api()(api::kReadOpAttr, attribute, type, nullptr, size_t{0}, &bytes);
  if (status != nullptr) runtime.api()(api::kReleaseStatus, status);  // it says that there are more
  std::string content(bytes, '\0');
  if (bytes > 0) runtime.check(runtime.api()(api::kReadOpAttr, attribute, type, content.data(), bytes, &bytes));
  return content;
}

std::string text_attribute(const Runtime& runtime, const OrtNode* node, const char* name) {
  const auto* const attribute = find_attribute(runtime, node, name);
  return attribute == nullptr ? "" : attribute_content(runtime, attribute, AttributeType::kString);
}

int64_t int_attribute(const Runtime& runtime, const OrtNode* node, const char* name, int64_t otherwise) {
  const auto* const attribute = find_attribute(runtime, node, name);
  if (attribute == nullptr) return otherwise;
  const std::string content = attribute_content(runtime, attribute, AttributeType::kInt);
  if (content.size() == sizeof otherwise) std::memcpy(&otherwise, content.data(), sizeof otherwise);
  return otherwise;
}

Region region_of(const Graph& graph, std::vector<size_t> nodes) {
  std::sort(nodes.begin(), nodes.end());
  Region region;
  std::vector<bool> inside(graph.nodes.size(), false), seen(graph.values.size(), false);
  for (const size_t node : nodes) inside[node] = true;
  for (const size_t node : nodes) {
    for (const size_t value : graph.nodes[node].inputs) {
      if (value == kNone || seen[value] || graph.values[value].is_constant) continue;
      seen[value] = true;
      const size_t producer = graph.producers[value];
      if (producer == kNone || !inside[producer]) region.inputs.push_back(value);
    }
    for (const size_t value : graph.nodes[node].outputs) {
      if (value == kNone) continue;
      const std::vector<size_t>& uses = graph.uses[value];
      const bool leaves = std::any_of(uses.begin(), uses.end(), [&](size_t use) { return !inside[use]; });
      if (leaves || graph.values[value].is_output) region.outputs.push_back(value);
    }
  }
  region.nodes = std::move(nodes);
  return region;
}

bool has_inferred_shape(const GraphValue& input) {
  const auto is_open = [](int64_t extent) { return extent < 0; };
  return input.is_inferred && input.has_shape && std::none_of(input.extents.begin(), input.extents.end(), is_open);
}

std::map<std::string, Shape> inferred_shapes(const Graph& graph, const Region& region) {
  std::map<std::string, Shape> shapes;
  for (const size_t value : region.inputs) {
    const GraphValue& input = graph.values[value];
    if (has_inferred_shape(input)) shapes[input.name] = input.extents;
  }
  return shapes;
}

}  // namespace heddle::ort
