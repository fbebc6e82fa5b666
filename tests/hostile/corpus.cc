#include "corpus.h"

namespace heddle::hostile {

using onnx::testing::ModelWriter;
using onnx::testing::pbf_writer;

ModelWriter relu_model() {
  return one_node("Relu", {"x"}, {2, 3});
}

ModelWriter one_node(const std::string& op, const std::vector<std::string>& inputs,
                     const std::vector<onnx::testing::Dim>& dims, const std::vector<std::string>& attributes,
                     const std::vector<std::string>& initializers, int64_t opset) {
  ModelWriter m;
  m.opsets = {{"", opset}};
  m.input("x", onnx::testing::kFloat, dims);
  m.initializers = initializers;
  m.nodes = {{op, inputs, {"y"}, attributes, "n", ""}};
  m.output("y");
  return m;
}

std::string float_attr(const std::string& name, float value) {
  std::string bytes;
  pbf_writer writer(bytes);
  writer.add_string(1, name);
  writer.add_float(2, value);
  writer.add_enum(20, 1);
  return bytes;
}

std::string text_attr(const std::string& name, const std::string& value) {
  std::string bytes;
  pbf_writer writer(bytes);
  writer.add_string(1, name);
  writer.add_string(4, value);
  writer.add_enum(20, 3);
  return bytes;
}

std::string graph_attr(const std::string& name, const std::string& graph) {
  std::string bytes;
  pbf_writer writer(bytes);
  writer.add_string(1, name);
  writer.add_message(6, graph);
  writer.add_enum(20, 5);
  return bytes;
}

std::string longs(const std::string& name, const std::vector<int64_t>& values) {
  return onnx::testing::raw_tensor<int64_t>(name, onnx::testing::kInt64, {static_cast<int64_t>(values.size())}, values);
}

std::string scalar(const std::string& name, int64_t value) {
  return onnx::testing::raw_tensor<int64_t>(name, onnx::testing::kInt64, {}, {value});
}

std::string floats(const std::string& name, const Shape& shape) {
  size_t count = 1;
  for (const int64_t d : shape) count *= static_cast<size_t>(d);
  return onnx::testing::raw_tensor<float>(name, onnx::testing::kFloat, shape, std::vector<float>(count));
}

}  // namespace heddle::hostile
