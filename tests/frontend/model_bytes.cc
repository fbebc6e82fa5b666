#include "model_bytes.h"

#include <protozero/pbf_writer.hpp>

#include "base/check.h"
#include "ir/reference/eval.h"

namespace heddle::onnx {
namespace {

using protozero::pbf_writer;

// TensorProto.DataType of a type.
int32_t data_type(DType type) {
  switch (type) {
    case DType::kF32:
      return 1;
    case DType::kU8:
      return 2;
    case DType::kI8:
      return 3;
    case DType::kI32:
      return 6;
    case DType::kI64:
      return 7;
    case DType::kString:
      return 8;
    case DType::kBool:
      return 9;
    case DType::kF16:
      return 10;
    case DType::kBF16:
      return 16;
    default:
      HEDDLE_CHECK(false, "no code for {}", to_string(type));
  }
}

void write_tensor(pbf_writer writer, const Tensor& tensor, const std::string& name) {
  writer.add_packed_int64(1, tensor.shape().begin(), tensor.shape().end());
  writer.add_int32(2, data_type(tensor.dtype()));
  writer.add_string(8, name);
  if (tensor.dtype() == DType::kString) {
    for (const std::string& s : tensor.strings()) writer.add_bytes(6, s);
  } else {
    writer.add_bytes(9, static_cast<const char*>(tensor.data()), tensor.bytes());
  }
}

void write_graph(pbf_writer writer, const GraphSpec& graph);

struct AttrWriter {
  pbf_writer& writer;

  void type(int32_t code) const { writer.add_int32(20, code); }
  void operator()(int64_t v) const { writer.add_int64(3, v), type(2); }
  void operator()(float v) const { writer.add_float(2, v), type(1); }
  void operator()(const std::string& v) const { writer.add_bytes(4, v), type(3); }
  void operator()(const std::vector<int64_t>& v) const { writer.add_packed_int64(8, v.begin(), v.end()), type(7); }
  void operator()(const std::vector<float>& v) const { writer.add_packed_float(7, v.begin(), v.end()), type(6); }
  void operator()(const std::vector<std::string>& v) const {
    for (const std::string& s : v) writer.add_bytes(9, s);
    type(8);
  }
  // The writer of a message inside lives to the end of its statement; only then may this one write again.
  void operator()(const Tensor& v) const {
    write_tensor(pbf_writer(writer, 5), v, "");
    type(4);
  }
  void operator()(const GraphSpec& v) const {
    write_graph(pbf_writer(writer, 6), v);
    type(5);
  }
};

void write_node(pbf_writer writer, const NodeSpec& node) {
  for (const std::string& name : node.inputs) writer.add_string(1, name);
  for (const std::string& name : node.outputs) writer.add_string(2, name);
  writer.add_string(4, node.op);
  for (const auto& [name, value] : node.attributes) {
    pbf_writer attribute(writer, 5);
    attribute.add_string(1, name);
    std::visit(AttrWriter{attribute}, value);
  }
  if (!node.domain.empty()) writer.add_string(7, node.domain);
}

void write_port(pbf_writer writer, const PortSpec& port) {
  writer.add_string(1, port.name);
  pbf_writer type(writer, 2);
  pbf_writer tensor(type, 1);
  tensor.add_int32(1, data_type(port.dtype));
  pbf_writer shape(tensor, 2);
  for (size_t d = 0; d < port.shape.size(); ++d) {
    pbf_writer dim(shape, 1);
    if (port.shape[d] >= 0) {
      dim.add_int64(1, port.shape[d]);
    } else {
      dim.add_string(2, fmt::format("{}_{}", port.name, d));
    }
  }
}

void write_graph(pbf_writer writer, const GraphSpec& graph) {
  for (const NodeSpec& node : graph.nodes) write_node(pbf_writer(writer, 1), node);
  writer.add_string(2, "g");
  for (const auto& [name, tensor] : graph.initializers) write_tensor(pbf_writer(writer, 5), tensor, name);
  for (const PortSpec& port : graph.inputs) write_port(pbf_writer(writer, 11), port);
  for (const PortSpec& port : graph.values) write_port(pbf_writer(writer, 13), port);
  for (const std::string& name : graph.outputs) pbf_writer(writer, 12).add_string(1, name);
}

void write_opset(pbf_writer writer, const std::string& domain, int64_t version) {
  writer.add_string(1, domain);
  writer.add_int64(2, version);
}

}  // namespace

std::string model_bytes(const GraphSpec& graph, int64_t opset) {
  std::string bytes;
  pbf_writer writer(bytes);
  writer.add_int64(1, 10);
  write_graph(pbf_writer(writer, 7), graph);
  write_opset(pbf_writer(writer, 8), "", opset);
  write_opset(pbf_writer(writer, 8), "ai.onnx.ml", 5);
  write_opset(pbf_writer(writer, 8), "com.microsoft", 1);
  return bytes;
}

Imported import_spec(const GraphSpec& graph, int64_t opset, const ImportOptions& options) {
  const auto bytes = std::make_shared<const std::string>(model_bytes(graph, opset));
  return import_model(*bytes, bytes, "", options);
}

std::map<std::string, ir::Array> run_spec(const GraphSpec& graph, const std::map<std::string, Tensor>& inputs,
                                          int64_t opset) {
  ImportOptions options;
  for (const auto& [name, tensor] : inputs) {
    options.shapes[name] = tensor.shape();
    options.values[name] = tensor;
  }
  const Imported imported = import_spec(graph, opset, options);
  std::vector<ir::Array> arrays;
  for (const auto& port : imported.graph.inputs()) arrays.push_back(ir::to_array(inputs.at(port.name)));
  std::vector<ir::Array> results = ir::evaluate(imported.graph, std::move(arrays));
  std::map<std::string, ir::Array> named;
  for (size_t i = 0; i < results.size(); ++i) named[imported.graph.outputs()[i].name] = std::move(results[i]);
  return named;
}

Tensor floats(Shape shape, const std::vector<float>& values) {
  return Tensor::of<float>(DType::kF32, std::move(shape), std::span(values));
}

Tensor longs(Shape shape, const std::vector<int64_t>& values) {
  return Tensor::of<int64_t>(DType::kI64, std::move(shape), std::span(values));
}

}  // namespace heddle::onnx
