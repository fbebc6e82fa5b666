#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "heddle/dtype.h"
#include "heddle/tensor.h"
#include "zoo/onnx_file.h"
#include "zoo/weights.h"

namespace heddle::zoo {

// A tensor of the graph under construction. An empty name stands for an omitted optional input.
struct Value {
  std::string name;
  Shape shape;
  DType dtype = DType::kF32;
};

using Ints = std::vector<int64_t>;

struct Attribute {
  std::string name;
  // std::string holds a text; Subgraph holds an encoded GraphProto.
  struct Subgraph {
    std::string bytes;
  };
  std::variant<int64_t, float, std::string, Ints, Subgraph> value;
};

// Writes an ONNX graph node by node. Every method returns a value with its shape, so a caller gives only the output
// width of a layer. Throws kInvalidArgument with the name of the node if a shape breaks the operator's rules, which
// means that the chosen sizes do not fit the model.
//
// Names are as exporters write them: in the scopes "layer1" and "conv", a weight is "layer1.conv.weight" and a node is
// "/layer1/conv/Conv".
class GraphBuilder {
 public:
  // `real` is the type to write in place of f32.
  GraphBuilder(std::string name, int opset, DType real = DType::kF32);

  int opset() const { return image_.opset; }

  // While this object exists, new names have the prefix `name` of scope().
  class Scope {
   public:
    explicit Scope(GraphBuilder& graph) : graph_(graph) {}
    ~Scope() { graph_.scopes_.pop_back(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    GraphBuilder& graph_;
  };
  [[nodiscard]] Scope scope(std::string_view name);

  Value input(const std::string& name, DType dtype, Shape shape);
  // An i64 input of indices into a table of `rows` rows. The metadata entry "range:NAME" stores the range of indices.
  Value index_input(const std::string& name, int64_t rows, Shape shape);
  void output(const Value& value, const std::string& name);

  // Adds a weight. Its full name is `name` within the current scopes.
  Value weight(std::string_view name, Shape shape, const Fill& fill);
  // Constants, as Constant nodes.
  Value scalar(float value) { return floats({}, {value}); }
  Value ints(const Ints& values);
  Value index(int64_t value);
  Value floats(const Shape& shape, const std::vector<float>& values);

  // Adds any node with one output.
  Value node(std::string_view type, const std::vector<Value>& inputs, const std::vector<Attribute>& attributes,
             Shape shape, DType dtype = DType::kF32);
  // Adds any node. Sets the names of `outputs`.
  void multi_node(std::string_view type, const std::vector<Value>& inputs, const std::vector<Attribute>& attributes,
                  std::vector<Value>& outputs);

  // Elementwise operators, with broadcasting.
  Value unary(std::string_view type, const Value& x);
  Value binary(std::string_view type, const Value& a, const Value& b);
  Value add(const Value& a, const Value& b) { return binary("Add", a, b); }
  Value sub(const Value& a, const Value& b) { return binary("Sub", a, b); }
  Value mul(const Value& a, const Value& b) { return binary("Mul", a, b); }
  Value div(const Value& a, const Value& b) { return binary("Div", a, b); }
  Value relu(const Value& x) { return unary("Relu", x); }
  Value sigmoid(const Value& x) { return unary("Sigmoid", x); }
  Value cast(const Value& x, DType to);

  // Contractions. gemm() multiplies a [m,k] by the transpose of b [n,k] and adds bias [n].
  Value matmul(const Value& a, const Value& b);
  Value gemm(const Value& a, const Value& b, const Value& bias);

  // Softmax and reductions. `axis` may be negative.
  Value softmax(const Value& x, int64_t axis);
  Value log_softmax(const Value& x, int64_t axis);
  Value reduce(std::string_view type, const Value& x, int64_t axis, bool keep);

  // Data movement.
  Value reshape(const Value& x, const Shape& shape);
  Value transpose(const Value& x, const Ints& permutation);
  Value unsqueeze(const Value& x, const Ints& axes);
  Value squeeze(const Value& x, int64_t axis);
  Value concat(const std::vector<Value>& parts, int64_t axis);
  Value slice(const Value& x, int64_t axis, int64_t begin, int64_t end);
  // Splits x into `parts` equal pieces along `axis`.
  std::vector<Value> split(const Value& x, int64_t parts, int64_t axis);
  Value gather(const Value& table, const Value& indices, int64_t axis);
  // The extent of one axis, computed as exporters write it: Shape, then Gather.
  Value extent(const Value& x, int64_t axis);

  // Creates a builder for the body of a control-flow node. Names in the body are below the current scopes. The body may
  // use every value of this graph. finish_body() returns the attribute's value.
  GraphBuilder body(std::string_view name) const;
  Attribute::Subgraph finish_body() const { return {image_.graph}; }
  // Returns the whole model. The builder is empty afterwards.
  ModelImage finish() { return std::move(image_); }

 private:
  DType stored(DType dtype) const { return dtype == DType::kF32 ? image_.real : dtype; }
  std::string node_name(std::string_view type);
  void write_node(const std::string& name, std::string_view type, const std::vector<Value>& inputs,
                  const std::vector<Attribute>& attributes, const std::vector<Value>& outputs);
  Value constant(DType dtype, const Shape& shape, std::string raw);
  [[noreturn]] void reject(std::string_view type, const std::vector<Value>& inputs) const;

  ModelImage image_;
  std::vector<std::string> scopes_;
  std::vector<std::pair<std::string, int>> used_;  // node names and the number of requests for each, sorted by name
};

}  // namespace heddle::zoo
