#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "frontend/onnx/reader/proto.h"
#include "frontend/onnx/reader/tensor_data.h"
#include "frontend/onnx/value.h"
#include "ir/builder.h"

namespace heddle::onnx {

class GraphImporter;
struct FailingBranch;

// A branch or loop body that became a graph of its own.
struct Body {
  std::shared_ptr<ir::Graph> graph;   // its outputs are not marked yet: the caller picks names and order
  std::vector<Value> outputs;         // of the ONNX graph, as values of `graph`
  std::vector<ir::ValueId> captured;  // outer values for the parameters after the formal inputs
};

// The interface of a handler to the node that it lowers.
class NodeContext {
 public:
  NodeContext(GraphImporter& importer, const NodeProto& node, int64_t version, std::vector<Value> inputs,
              std::string label);

  ir::Builder& b;  // emits into the graph being built, with this node as origin

  const NodeProto& node() const { return node_; }
  std::string_view op_type() const { return node_.op_type; }
  int64_t version() const { return version_; }  // opset version of the node's domain
  // "node 'conv1' (Conv, f32[1,3,8,8], f32[4,3,3,3])"
  std::string where() const;
  // Error about this node.
  [[noreturn]] void fail(ErrorCode code, std::string why, std::string remedy = {}) const;
  [[noreturn]] void invalid(std::string why) const { fail(ErrorCode::kInvalidNode, std::move(why)); }
  [[noreturn]] void unsupported(std::string why) const { fail(ErrorCode::kUnsupportedOperator, std::move(why)); }

  // Attributes. A wrong type is kInvalidNode. Those without a default are required unless noted.
  bool has_attr(std::string_view name) const { return attr(name) != nullptr; }
  const AttributeProto* attr(std::string_view name) const;  // resolves attributes of functions; null if not given
  int64_t attr_int(std::string_view name) const;
  int64_t attr_int(std::string_view name, int64_t fallback) const;
  double attr_float(std::string_view name) const;
  double attr_float(std::string_view name, double fallback) const;
  std::string attr_string(std::string_view name) const;
  std::string attr_string(std::string_view name, std::string_view fallback) const;
  ir::Ints attr_ints(std::string_view name, ir::Ints fallback = {}) const;
  std::vector<double> attr_floats(std::string_view name) const;        // empty if not given
  std::vector<std::string> attr_strings(std::string_view name) const;  // empty if not given
  Tensor attr_tensor(std::string_view name) const;
  Tensor attr_sparse_tensor(std::string_view name) const;  // made dense
  const GraphProto& attr_graph(std::string_view name) const;
  DType attr_dtype(std::string_view name, DType fallback) const;  // an ONNX data type number

  // Inputs. Indices past the end are absent inputs.
  size_t input_count() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && !inputs_[i].absent(); }
  const Value& value(size_t i) const;
  ir::ValueId in(size_t i) const;  // a tensor; else kInvalidNode
  std::optional<ir::ValueId> optional_in(size_t i) const { return has(i) ? std::optional(in(i)) : std::nullopt; }
  const ir::TensorType& type(size_t i) const { return b.type(in(i)); }
  const Shape& shape(size_t i) const { return b.shape(in(i)); }
  DType dtype(size_t i) const { return b.dtype(in(i)); }
  int64_t rank(size_t i) const { return static_cast<int64_t>(shape(i).size()); }
  void replace_input(size_t i, Value value) { inputs_.at(i) = std::move(value); }
  std::vector<ir::ValueId> tensors() const;  // all inputs, which must be tensors

  // The value of an input (or of anything emitted), folded through the reference evaluator. If it depends on inputs of
  // the model, these are specialised: the import starts again with their values, or fails with kUnknownShape and names
  // them. try_constant() then returns nullopt instead. A kStrings input gives its text.
  Tensor constant(size_t i) const;
  std::optional<Tensor> try_constant(size_t i) const;
  Tensor constant_of(ir::ValueId v) const;
  std::optional<Tensor> try_constant_of(ir::ValueId v) const;
  ir::Ints constant_ints(size_t i) const;  // an integer tensor of any rank, flattened
  std::vector<double> constant_reals(size_t i) const;
  int64_t constant_int(size_t i) const;  // one element
  double constant_real(size_t i) const;

  // Outputs. Every output that wants() must be set.
  size_t output_count() const { return node_.outputs.size(); }
  bool wants(size_t i) const { return i < node_.outputs.size() && !node_.outputs[i].empty(); }
  void set(size_t i, Value value);
  // Dimension `dim` of an output as the model declares it: a number, or a symbol with a value from the options' shapes
  // or a guess.
  std::optional<int64_t> declared_extent(size_t output, size_t dim) const;
  const std::vector<Value>& outputs() const { return outputs_; }

  // Subgraphs. The names of enclosing scopes that the graph and its subgraphs read, in order of first use.
  std::vector<std::string> captured_names(const GraphProto& graph) const;
  // Imports a subgraph into the graph being built, with these values for its inputs: for unrolled loops and for
  // branches with a constant condition.
  std::vector<Value> inline_graph(const GraphProto& graph, std::span<const Value> inputs);
  // Imports a subgraph as a graph of its own. Its parameters are the formal inputs with the given types, then one for
  // each captured tensor that is not a constant. All branches of an If need the same `captures`: the union of their
  // names.
  Body import_body(const GraphProto& graph, std::span<const ir::TensorType> inputs,
                   std::span<const std::string> captures);

  // The branches of all nodes so far that cannot be built for these shapes. A run that takes one fails.
  std::vector<FailingBranch>& failing_branches();
  GraphImporter& importer() const { return importer_; }
  const std::string& label() const { return label_; }

  // The seed of random operators that have none. It differs between the nodes of a model.
  uint64_t default_seed() const;
  // An axis of a tensor of this rank; a negative one counts from the end. kInvalidNode if out of range.
  int64_t axis(int64_t axis, int64_t rank) const;
  ir::Ints axes(ir::Ints axes, int64_t rank) const;  // the same for several, sorted; duplicates are an error

 private:
  GraphImporter& importer_;
  const NodeProto& node_;
  int64_t version_;
  std::vector<Value> inputs_;
  std::vector<Value> outputs_;
  std::string label_;
};

}  // namespace heddle::onnx
