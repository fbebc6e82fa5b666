#include "node_case.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <protozero/pbf_reader.hpp>

#include "base/check.h"
#include "frontend/onnx/reader/proto.h"
#include "frontend/onnx/reader/tensor_data.h"

namespace heddle::node_tests {
namespace {

namespace fs = std::filesystem;
using onnx::TypeProto;
using protozero::pbf_reader;

// Their outputs are random: only types and shapes can agree.
constexpr std::array kRandom = {"bernoulli", "training_dropout"};

std::shared_ptr<const std::string> read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(ErrorCode::kFile, path, "it cannot be read");
  return std::make_shared<const std::string>(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

TestValue read_value(std::string_view bytes, const std::shared_ptr<const void>& owner, const TypeProto& type,
                     const std::string& where) {
  TestValue value;
  switch (type.kind) {
    case TypeProto::Kind::kTensor:
      value.kind = TestValue::Kind::kTensor;
      value.tensor = onnx::TensorLoader(owner).load(onnx::parse_tensor(bytes), where);
      return value;
    case TypeProto::Kind::kSequence: {  // SequenceProto
      value.kind = TestValue::Kind::kSequence;
      pbf_reader message(bytes.data(), bytes.size());
      while (message.next()) {
        if (message.tag() == 3 || message.tag() == 5) {  // tensor_values, sequence_values
          const auto item = message.get_view();
          value.items.push_back(read_value({item.data(), item.size()}, owner, *type.element, where));
        } else {
          message.skip();
        }
      }
      return value;
    }
    case TypeProto::Kind::kOptional: {  // OptionalProto
      pbf_reader message(bytes.data(), bytes.size());
      while (message.next()) {
        if (message.tag() == 3 || message.tag() == 5) {  // tensor_value, sequence_value
          const auto item = message.get_view();
          return read_value({item.data(), item.size()}, owner, *type.element, where);
        }
        message.skip();
      }
      return value;
    }
    default:
      fail(ErrorCode::kUnsupportedType, where, "a test value that is no tensor, sequence or optional");
  }
}

std::vector<TestValue> read_values(const std::string& folder, const char* kind,
                                   const std::vector<onnx::ValueInfoProto>& infos) {
  std::vector<TestValue> values;
  for (size_t i = 0; i < infos.size(); ++i) {
    const std::string path = fmt::format("{}/test_data_set_0/{}_{}.pb", folder, kind, i);
    const auto bytes = read_bytes(path);
    values.push_back(read_value(*bytes, bytes, infos[i].type, path));
  }
  return values;
}

bool has_graph(const onnx::NodeProto& node) {
  return std::any_of(node.attributes.begin(), node.attributes.end(),
                     [](const onnx::AttributeProto& a) { return a.g != nullptr; });
}

// A model of several nodes is about the one with a body, else about the last.
std::string op_of(const std::vector<onnx::NodeProto>& nodes) {
  if (nodes.empty()) return "(none)";
  const auto at = std::find_if(nodes.begin(), nodes.end(), has_graph);
  const onnx::NodeProto& node = at == nodes.end() ? nodes.back() : *at;
  return node.domain.empty() ? std::string(node.op_type) : fmt::format("{}:{}", node.domain, node.op_type);
}

}  // namespace

std::vector<std::string> list_cases(const std::string& data) {
  std::vector<std::string> folders;
  for (const auto& entry : fs::directory_iterator(data)) {
    if (fs::exists(entry.path() / "model.onnx")) folders.push_back(entry.path().filename().string());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

NodeCase read_case(const std::string& data, const std::string& folder) {
  NodeCase result;
  const std::string path = data + "/" + folder;
  result.name = folder.starts_with("test_") ? folder.substr(5) : folder;
  result.model_path = path + "/model.onnx";
  const auto bytes = read_bytes(result.model_path);
  const onnx::ModelProto model = onnx::parse_model(*bytes, bytes, result.model_path);
  result.op = op_of(model.graph.nodes);
  // The expansion of an operator's function is still about that operator.
  if (const size_t at = result.name.find("_expanded"); at != std::string::npos) {
    const std::string plain = data + "/test_" + result.name.substr(0, at) + "/model.onnx";
    if (fs::exists(plain)) {
      const auto plain_bytes = read_bytes(plain);
      result.op = op_of(onnx::parse_model(*plain_bytes, plain_bytes, plain).graph.nodes);
    }
  }
  for (const char* prefix : kRandom) {
    if (result.name.starts_with(prefix)) result.reason = "random";
  }
  std::vector<onnx::ValueInfoProto> inputs;  // there are no data for weights, which old models list, too
  for (const auto& info : model.graph.inputs) {
    const auto& weights = model.graph.initializers;
    const auto is_its = [&](const onnx::TensorProto& tensor) { return tensor.name == info.name; };
    if (std::none_of(weights.begin(), weights.end(), is_its)) inputs.push_back(info);
  }
  for (const auto& info : inputs) result.input_names.emplace_back(info.name);
  for (const auto& info : model.graph.outputs) result.output_names.emplace_back(info.name);
  result.inputs = read_values(path, "input", inputs);
  result.outputs = read_values(path, "output", model.graph.outputs);
  return result;
}

}  // namespace heddle::node_tests
