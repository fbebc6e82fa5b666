#pragma once

#include <protozero/pbf_writer.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "frontend/onnx/importer.h"
#include "ir/reference/array.h"
#include "ir/reference/eval.h"

// Builds small ONNX models byte by byte, wrong ones too.
namespace heddle::onnx::testing {

using protozero::pbf_writer;

// ONNX element types.
enum : int {
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kInt4 = 22
};

// A dimension: a number, or a symbol.
using Dim = std::variant<int64_t, std::string>;

inline std::string tensor_type(int elem_type, const std::vector<Dim>& dims, bool with_shape = true) {
  std::string shape;
  for (const Dim& dim : dims) {
    std::string bytes;
    pbf_writer d(bytes);
    if (const auto* value = std::get_if<int64_t>(&dim)) d.add_int64(1, *value);
    if (const auto* symbol = std::get_if<std::string>(&dim)) d.add_string(2, *symbol);
    pbf_writer(shape).add_message(1, bytes);
  }
  std::string tensor, type;
  pbf_writer(tensor).add_int32(1, elem_type);
  if (with_shape) pbf_writer(tensor).add_message(2, shape);
  pbf_writer(type).add_message(1, tensor);
  return type;
}

inline std::string value_info(const std::string& name, const std::string& type) {
  std::string bytes;
  pbf_writer writer(bytes);
  writer.add_string(1, name);
  writer.add_message(2, type);
  return bytes;
}

template <typename T>
std::string raw_tensor(const std::string& name, int elem_type, const Shape& dims, const std::vector<T>& values) {
  std::string bytes;
  pbf_writer writer(bytes);
  for (const int64_t d : dims) writer.add_int64(1, d);
  writer.add_int32(2, elem_type);
  writer.add_string(8, name);
  writer.add_bytes(9, reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return bytes;
}

inline std::string int_attr(const std::string& name, int64_t value) {
  std::string bytes;
  pbf_writer writer(bytes);
  writer.add_string(1, name);
  writer.add_int64(3, value);
  writer.add_enum(20, 2);
  return bytes;
}

inline std::string ints_attr(const std::string& name, const std::vector<int64_t>& values) {
  std::string bytes;
  pbf_writer writer(bytes);
  writer.add_string(1, name);
  for (const int64_t v : values) writer.add_int64(8, v);
  writer.add_enum(20, 7);
  return bytes;
}

inline std::string ref_attr(const std::string& name, const std::string& outer, int type) {
  std::string bytes;
  pbf_writer writer(bytes);
  writer.add_string(1, name);
  writer.add_enum(20, type);
  writer.add_string(21, outer);
  return bytes;
}

inline std::string tensor_attr(const std::string& name, const std::string& tensor) {
  std::string bytes;
  pbf_writer writer(bytes);
  writer.add_string(1, name);
  writer.add_message(5, tensor);
  writer.add_enum(20, 4);
  return bytes;
}

// Two floats, "w", whose data lies in another file; `where`: location, offset, length.
inline std::string external_tensor(const std::vector<std::pair<std::string, std::string>>& where) {
  std::string bytes;
  pbf_writer writer(bytes);
  writer.add_int64(1, 2);
  writer.add_int32(2, kFloat);
  writer.add_string(8, "w");
  for (const auto& [key, value] : where) {
    std::string entry;
    pbf_writer e(entry);
    e.add_string(1, key);
    e.add_string(2, value);
    writer.add_message(13, entry);
  }
  writer.add_int32(14, 1);
  return bytes;
}

struct Node {
  std::string op;
  std::vector<std::string> inputs, outputs, attributes;
  std::string name, domain;

  std::string bytes() const {
    std::string text;
    pbf_writer writer(text);
    for (const auto& i : inputs) writer.add_string(1, i);
    for (const auto& o : outputs) writer.add_string(2, o);
    if (!name.empty()) writer.add_string(3, name);
    writer.add_string(4, op);
    for (const auto& a : attributes) writer.add_message(5, a);
    if (!domain.empty()) writer.add_string(7, domain);
    return text;
  }
};

struct Function {
  std::string name, domain;
  std::vector<std::string> inputs, outputs, attributes;
  std::vector<Node> nodes;
};

struct ModelWriter {
  int64_t ir_version = 8;
  std::vector<std::pair<std::string, int64_t>> opsets = {{"", 17}};
  std::vector<Node> nodes;
  std::vector<std::string> inputs, outputs, initializers;  // ValueInfoProto, ValueInfoProto, TensorProto
  std::vector<std::string> sparse_initializers;            // SparseTensorProto
  std::vector<Function> functions;

  void input(const std::string& name, int type, const std::vector<Dim>& dims) {
    inputs.push_back(value_info(name, tensor_type(type, dims)));
  }
  void output(const std::string& name, int type = kFloat) {
    outputs.push_back(value_info(name, tensor_type(type, {}, false)));
  }
  std::string graph_bytes() const {
    std::string text;
    pbf_writer writer(text);
    for (const Node& n : nodes) writer.add_message(1, n.bytes());
    writer.add_string(2, "test");
    for (const auto& t : initializers) writer.add_message(5, t);
    for (const auto& t : sparse_initializers) writer.add_message(15, t);
    for (const auto& i : inputs) writer.add_message(11, i);
    for (const auto& o : outputs) writer.add_message(12, o);
    return text;
  }
  static void add_opsets(pbf_writer& writer, int field, const std::vector<std::pair<std::string, int64_t>>& sets) {
    for (const auto& [domain, version] : sets) {
      std::string set;
      pbf_writer w(set);
      w.add_string(1, domain);
      w.add_int64(2, version);
      writer.add_message(static_cast<protozero::pbf_tag_type>(field), set);
    }
  }
  std::string bytes() const {
    std::string text;
    pbf_writer writer(text);
    writer.add_int64(1, ir_version);
    writer.add_message(7, graph_bytes());
    add_opsets(writer, 8, opsets);
    for (const Function& f : functions) {
      std::string body;
      pbf_writer w(body);
      w.add_string(1, f.name);
      for (const auto& i : f.inputs) w.add_string(4, i);
      for (const auto& o : f.outputs) w.add_string(5, o);
      for (const auto& a : f.attributes) w.add_string(6, a);
      for (const Node& n : f.nodes) w.add_message(7, n.bytes());
      add_opsets(w, 9, opsets);
      w.add_string(10, f.domain);
      writer.add_message(25, body);
    }
    return text;
  }
};

// The model keeps its bytes alive through the imported tensors.
inline Imported import(const std::string& bytes, const ImportOptions& options = {}, const std::string& folder = "") {
  const auto owner = std::make_shared<const std::string>(bytes);
  return import_model(*owner, owner, folder, options);
}

inline Tensor floats(Shape shape, const std::vector<float>& values) {
  return Tensor::of<float>(DType::kF32, std::move(shape), std::span(values));
}
inline Tensor longs(Shape shape, const std::vector<int64_t>& values) {
  return Tensor::of<int64_t>(DType::kI64, std::move(shape), std::span(values));
}

inline std::vector<Tensor> evaluate(const Imported& model, const std::vector<Tensor>& inputs) {
  std::vector<ir::Array> arrays;
  for (const Tensor& t : inputs) arrays.push_back(ir::to_array(t));
  ir::EvalOptions options;
  options.round = true;
  std::vector<Tensor> results;
  for (const ir::Array& a : ir::evaluate(model.graph, std::move(arrays), options)) results.push_back(ir::to_tensor(a));
  return results;
}

template <typename T>
std::vector<T> values_of(const Tensor& tensor) {
  const auto values = tensor.values<T>();
  return {values.begin(), values.end()};
}

}  // namespace heddle::onnx::testing
