#include "zoo/graph_builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "base/check.h"
#include "zoo/onnx_fields.h"

namespace heddle::zoo {
namespace {

using protozero::pbf_writer;

void write_value_info(std::string& graph, protozero::pbf_tag_type tag, const std::string& name, const Shape& shape,
                      DType dtype) {
  pbf_writer writer(graph);
  pbf_writer info(writer, tag);
  info.add_string(onnx::ValueInfo::kName, name);
  pbf_writer type(info, onnx::ValueInfo::kType);
  pbf_writer tensor(type, onnx::Type::kTensor);
  tensor.add_int32(onnx::Type::kTensorElement, onnx::data_type(dtype));
  pbf_writer extents(tensor, onnx::Type::kTensorShape);
  for (const int64_t extent : shape) {
    pbf_writer dim(extents, onnx::Type::kShapeDim);
    dim.add_int64(onnx::Type::kDimValue, extent);
  }
}

struct AttributeWriter {
  pbf_writer& out;

  void type(onnx::Attribute::Type value) { out.add_int32(onnx::Attribute::kType, value); }
  void operator()(int64_t value) {
    out.add_int64(onnx::Attribute::kInt, value);
    type(onnx::Attribute::kTypeInt);
  }
  void operator()(float value) {
    out.add_float(onnx::Attribute::kFloat, value);
    type(onnx::Attribute::kTypeFloat);
  }
  void operator()(const std::string& value) {
    out.add_bytes(onnx::Attribute::kString, value);
    type(onnx::Attribute::kTypeString);
  }
  void operator()(const Ints& values) {
    for (const int64_t value : values) out.add_int64(onnx::Attribute::kInts, value);
    type(onnx::Attribute::kTypeInts);
  }
  void operator()(const Attribute::Subgraph& value) {
    out.add_message(onnx::Attribute::kGraph, value.bytes);
    type(onnx::Attribute::kTypeGraph);
  }
};

// The shape of two broadcast operands; false if they do not fit.
bool broadcast(const Shape& a, const Shape& b, Shape& out) {
  const size_t rank = std::max(a.size(), b.size());
  out.assign(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return false;
    out[rank - 1 - i] = x == 1 ? y : x;
  }
  return true;
}

template <typename T>
std::string raw_bytes(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

bool compares(std::string_view type) {
  return type == "Equal" || type == "LessOrEqual";
}

size_t wrap(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

}  // namespace

GraphBuilder::GraphBuilder(std::string name, int opset, DType real) {
  image_.opset = opset;
  image_.real = real;
  pbf_writer(image_.graph).add_string(onnx::Graph::kName, name);
}

GraphBuilder::Scope GraphBuilder::scope(std::string_view name) {
  scopes_.emplace_back(name);
  return Scope(*this);
}

GraphBuilder GraphBuilder::body(std::string_view name) const {
  GraphBuilder body{std::string(name), opset(), image_.real};
  body.scopes_ = scopes_;
  body.scopes_.emplace_back(name);
  return body;
}

Value GraphBuilder::input(const std::string& name, DType dtype, Shape shape) {
  Value value{name, std::move(shape), dtype};
  write_value_info(image_.graph, onnx::Graph::kInput, name, value.shape, stored(value.dtype));
  return value;
}

Value GraphBuilder::index_input(const std::string& name, int64_t rows, Shape shape) {
  image_.metadata.emplace_back("range:" + name, fmt::format("0,{}", rows));
  return input(name, DType::kI64, std::move(shape));
}

void GraphBuilder::output(const Value& value, const std::string& name) {
  const Value named{name, value.shape, value.dtype};
  write_node("/" + name, "Identity", {value}, {}, {named});
  write_value_info(image_.graph, onnx::Graph::kOutput, name, value.shape, stored(value.dtype));
}

Value GraphBuilder::weight(std::string_view name, Shape shape, const Fill& fill) {
  std::string full = fmt::format("{}", fmt::join(scopes_, "."));
  if (!full.empty() && !name.empty()) full += '.';
  full += name;
  image_.initializers.push_back({full, shape, fill});
  return {full, std::move(shape), DType::kF32};
}

std::string GraphBuilder::node_name(std::string_view type) {
  std::string base = fmt::format("/{}{}{}", fmt::join(scopes_, "/"), scopes_.empty() ? "" : "/", type);
  const auto at =
      std::lower_bound(used_.begin(), used_.end(), base, [](const auto& e, const auto& n) { return e.first < n; });
  if (at == used_.end() || at->first != base) {
    used_.emplace(at, base, 1);
    return base;
  }
  return fmt::format("{}_{}", base, at->second++);
}

void GraphBuilder::write_node(const std::string& name, std::string_view type, const std::vector<Value>& inputs,
                              const std::vector<Attribute>& attributes, const std::vector<Value>& outputs) {
  pbf_writer graph(image_.graph);
  pbf_writer writer(graph, onnx::Graph::kNode);
  for (const Value& value : inputs) writer.add_string(onnx::Node::kInput, value.name);
  for (const Value& value : outputs) writer.add_string(onnx::Node::kOutput, value.name);
  writer.add_string(onnx::Node::kName, name);
  writer.add_string(onnx::Node::kOpType, type.data(), type.size());
  for (const Attribute& attribute : attributes) {
    pbf_writer entry(writer, onnx::Node::kAttribute);
    entry.add_string(onnx::Attribute::kName, attribute.name);
    std::visit(AttributeWriter{entry}, attribute.value);
  }
}

void GraphBuilder::multi_node(std::string_view type, const std::vector<Value>& inputs,
                              const std::vector<Attribute>& attributes, std::vector<Value>& outputs) {
  const std::string name = node_name(type);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Shape& shape = outputs[i].shape;
    if (std::any_of(shape.begin(), shape.end(), [](int64_t extent) { return extent < 1; })) reject(name, inputs);
    outputs[i].name = fmt::format("{}_output_{}", name, i);
  }
  write_node(name, type, inputs, attributes, outputs);
}

Value GraphBuilder::node(std::string_view type, const std::vector<Value>& inputs,
                         const std::vector<Attribute>& attributes, Shape shape, DType dtype) {
  std::vector<Value> outputs{{"", std::move(shape), dtype}};
  multi_node(type, inputs, attributes, outputs);
  return outputs[0];
}

void GraphBuilder::reject(std::string_view type, const std::vector<Value>& inputs) const {
  std::vector<std::string> shapes;
  for (const Value& value : inputs) shapes.push_back(to_string(value.shape));
  fail(ErrorCode::kInvalidArgument, std::string(type),
       fmt::format("shapes {} do not fit this layer", fmt::join(shapes, ", ")), "Choose other sizes for the model.");
}

Value GraphBuilder::constant(DType dtype, const Shape& shape, std::string raw) {
  const std::string name = node_name("Constant");
  Value value{name + "_output_0", shape, dtype};
  pbf_writer graph(image_.graph);
  pbf_writer node(graph, onnx::Graph::kNode);
  node.add_string(onnx::Node::kOutput, value.name);
  node.add_string(onnx::Node::kName, name);
  node.add_string(onnx::Node::kOpType, "Constant");
  pbf_writer attribute(node, onnx::Node::kAttribute);
  attribute.add_string(onnx::Attribute::kName, "value");
  attribute.add_int32(onnx::Attribute::kType, onnx::Attribute::kTypeTensor);
  pbf_writer tensor(attribute, onnx::Attribute::kTensor);
  tensor.add_packed_int64(onnx::Tensor::kDims, shape.begin(), shape.end());
  tensor.add_int32(onnx::Tensor::kDataType, onnx::data_type(stored(dtype)));
  tensor.add_bytes(onnx::Tensor::kRawData, raw);
  return value;
}

Value GraphBuilder::index(int64_t value) {
  return constant(DType::kI64, {}, raw_bytes(std::span<const int64_t>(&value, 1)));
}

Value GraphBuilder::ints(const Ints& values) {
  return constant(DType::kI64, {static_cast<int64_t>(values.size())}, raw_bytes(std::span<const int64_t>(values)));
}

Value GraphBuilder::floats(const Shape& shape, const std::vector<float>& values) {
  return constant(DType::kF32, shape, encode_values(image_.real, values));
}

Value GraphBuilder::unary(std::string_view type, const Value& x) {
  return node(type, {x}, {}, x.shape, x.dtype);
}

Value GraphBuilder::binary(std::string_view type, const Value& a, const Value& b) {
  Shape shape;
  if (!broadcast(a.shape, b.shape, shape)) reject(type, {a, b});
  return node(type, {a, b}, {}, std::move(shape), compares(type) ? DType::kBool : a.dtype);
}

Value GraphBuilder::cast(const Value& x, DType to) {
  return node("Cast", {x}, {{"to", int64_t{onnx::data_type(stored(to))}}}, x.shape, to);
}

Value GraphBuilder::matmul(const Value& a, const Value& b) {
  const size_t m = a.shape.size(), n = b.shape.size();
  if (m < 2 || n < 2 || a.shape[m - 1] != b.shape[n - 2]) reject("MatMul", {a, b});
  Shape shape;
  if (!broadcast(Shape(a.shape.begin(), a.shape.end() - 2), Shape(b.shape.begin(), b.shape.end() - 2), shape)) {
    reject("MatMul", {a, b});
  }
  shape.push_back(a.shape[m - 2]);
  shape.push_back(b.shape[n - 1]);
  return node("MatMul", {a, b}, {}, std::move(shape));
}

Value GraphBuilder::gemm(const Value& a, const Value& b, const Value& bias) {
  if (a.shape.size() != 2 || b.shape.size() != 2 || a.shape[1] != b.shape[1]) reject("Gemm", {a, b});
  return node("Gemm", {a, b, bias}, {{"alpha", 1.0F}, {"beta", 1.0F}, {"transB", 1}}, {a.shape[0], b.shape[0]});
}

Value GraphBuilder::softmax(const Value& x, int64_t axis) {
  return node("Softmax", {x}, {{"axis", axis}}, x.shape);
}

Value GraphBuilder::log_softmax(const Value& x, int64_t axis) {
  return node("LogSoftmax", {x}, {{"axis", axis}}, x.shape);
}

Value GraphBuilder::reduce(std::string_view type, const Value& x, int64_t axis, bool keep) {
  Shape shape = x.shape;
  const size_t at = wrap(axis, shape.size());
  if (keep) {
    shape[at] = 1;
  } else {
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at));
  }
  const Attribute keepdims{"keepdims", int64_t{keep}};
  // ReduceSum took its axes as an input five opsets before the other reductions did.
  if (type == "ReduceSum") return node(type, {x, ints({axis})}, {keepdims}, std::move(shape));
  return node(type, {x}, {{"axes", Ints{axis}}, keepdims}, std::move(shape));
}

Value GraphBuilder::reshape(const Value& x, const Shape& shape) {
  const auto hole = std::find(shape.begin(), shape.end(), -1);
  Shape result = shape;
  int64_t known = 1;
  for (const int64_t extent : shape) known *= extent == -1 ? 1 : extent;
  if (hole != shape.end()) result[static_cast<size_t>(hole - shape.begin())] = element_count(x.shape) / known;
  if (element_count(result) != element_count(x.shape)) reject("Reshape", {x});
  return node("Reshape", {x, ints(shape)}, {}, std::move(result), x.dtype);
}

Value GraphBuilder::transpose(const Value& x, const Ints& permutation) {
  Shape shape;
  for (const int64_t axis : permutation) shape.push_back(x.shape[static_cast<size_t>(axis)]);
  return node("Transpose", {x}, {{"perm", permutation}}, std::move(shape), x.dtype);
}

Value GraphBuilder::unsqueeze(const Value& x, const Ints& axes) {
  Shape shape = x.shape;
  for (const int64_t axis : axes) shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  return node("Unsqueeze", {x, ints(axes)}, {}, std::move(shape), x.dtype);
}

Value GraphBuilder::squeeze(const Value& x, int64_t axis) {
  Shape shape = x.shape;
  const size_t at = wrap(axis, shape.size());
  if (at >= shape.size() || shape[at] != 1) reject("Squeeze", {x});
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at));
  return node("Squeeze", {x, ints({axis})}, {}, std::move(shape), x.dtype);
}

Value GraphBuilder::concat(const std::vector<Value>& parts, int64_t axis) {
  Shape shape = parts[0].shape;
  const size_t at = wrap(axis, shape.size());
  for (size_t i = 1; i < parts.size(); ++i) shape[at] += parts[i].shape[at];
  return node("Concat", parts, {{"axis", axis}}, std::move(shape), parts[0].dtype);
}

Value GraphBuilder::slice(const Value& x, int64_t axis, int64_t begin, int64_t end) {
  Shape shape = x.shape;
  const size_t at = wrap(axis, shape.size());
  if (end > shape[at]) reject("Slice", {x});
  shape[at] = end - begin;
  return node("Slice", {x, ints({begin}), ints({end}), ints({axis}), ints({1})}, {}, std::move(shape), x.dtype);
}

std::vector<Value> GraphBuilder::split(const Value& x, int64_t parts, int64_t axis) {
  Shape shape = x.shape;
  const size_t at = wrap(axis, shape.size());
  if (shape[at] % parts != 0) reject("Split", {x});
  shape[at] /= parts;
  std::vector<Value> outputs(static_cast<size_t>(parts), {"", shape, x.dtype});
  multi_node("Split", {x, ints(Ints(static_cast<size_t>(parts), shape[at]))}, {{"axis", axis}}, outputs);
  return outputs;
}

Value GraphBuilder::gather(const Value& table, const Value& indices, int64_t axis) {
  Shape shape = table.shape;
  const size_t at = wrap(axis, shape.size());
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at));
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), indices.shape.begin(), indices.shape.end());
  return node("Gather", {table, indices}, {{"axis", axis}}, std::move(shape), table.dtype);
}

Value GraphBuilder::extent(const Value& x, int64_t axis) {
  const Value shape = node("Shape", {x}, {}, {static_cast<int64_t>(x.shape.size())}, DType::kI64);
  return gather(shape, index(axis), 0);
}

}  // namespace heddle::zoo
