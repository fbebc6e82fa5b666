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

// A branch or loop body, imported as a separate graph.
struct Body {
  std::shared_ptr<ir::Graph> graph;   // outputs not marked yet: the caller chooses their names and order
  std::vector<Value> outputs;         // outputs of the ONNX subgraph, as values of `graph`
  std::vector<ir::ValueId> captured;  // the outer value of each parameter after the formal inputs
};

// The interface that the handler of an operator uses to lower one node.
class NodeContext {
 public:
  NodeContext(GraphImporter& importer, const NodeProto& node, int64_t version, std::vector<Value> inputs,
              std::string label);

  ir::Builder& b;  // emits into the graph being built, with this node as origin

  const NodeProto& node() const { return node_; }
  std::string_view op_type() const { return node_.op_type; }
  int64_t version() const { return version_; }  // opset version of the node's domain
  // The node for error messages: "node 'conv1' (Conv, f32[1,3,8,8], f32[4,3,3,3])".
  std::string where() const;
  // Throws an error about this node.
  [[noreturn]] void fail(ErrorCode code, std::string why, std::string remedy = {}) const;
  [[noreturn]] void invalid(std::string why) const { fail(ErrorCode::kInvalidNode, std::move(why)); }
  [[noreturn]] void unsupported(std::string why) const { fail(ErrorCode::kUnsupportedOperator, std::move(why)); }

  // Attributes. Throw kInvalidNode for a wrong type and, unless noted or given a default, for a missing attribute.
  bool has_attr(std::string_view name) const { return attr(name) != nullptr; }
  const AttributeProto* attr(std::string_view name) const;  // resolves attributes of functions; null if absent
  int64_t attr_int(std::string_view name) const;
  int64_t attr_int(std::string_view name, int64_t fallback) const;
  double attr_float(std::string_view name) const;
  double attr_float(std::string_view name, double fallback) const;
  std::string attr_string(std::string_view name) const;
  std::string attr_string(std::string_view name, std::string_view fallback) const;
  ir::Ints attr_ints(std::string_view name, ir::Ints fallback = {}) const;
  std::vector<double> attr_floats(std::string_view name) const;        // empty if absent
  std::vector<std::string> attr_strings(std::string_view name) const;  // empty if absent
  Tensor attr_tensor(std::string_view name) const;
  Tensor attr_sparse_tensor(std::string_view name) const;  // converted to a dense tensor
  const GraphProto& attr_graph(std::string_view name) const;
  DType attr_dtype(std::string_view name, DType fallback) const;  // the attribute is an ONNX data type number

  // Inputs. An index past the end is an absent input.
  size_t input_count() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && !inputs_[i].absent(); }
  const Value& value(size_t i) const;
  ir::ValueId in(size_t i) const;  // throws kInvalidNode unless the input is a tensor
  std::optional<ir::ValueId> optional_in(size_t i) const { return has(i) ? std::optional(in(i)) : std::nullopt; }
  const ir::TensorType& type(size_t i) const { return b.type(in(i)); }
  const Shape& shape(size_t i) const { return b.shape(in(i)); }
  DType dtype(size_t i) const { return b.dtype(in(i)); }
  int64_t rank(size_t i) const { return static_cast<int64_t>(shape(i).size()); }
  void replace_input(size_t i, Value value) { inputs_.at(i) = std::move(value); }
  std::vector<ir::ValueId> tensors() const;  // all inputs, which must be tensors

  // Values of inputs (constant_of(): of any value), computed by the reference evaluator. If a value depends on model
  // inputs, the import restarts with their values as constants, or throws kUnknownShape with their names.
  // try_constant() returns nullopt instead. The constant of a kStrings input is its text.
  Tensor constant(size_t i) const;
  std::optional<Tensor> try_constant(size_t i) const;
  Tensor constant_of(ir::ValueId v) const;
  std::optional<Tensor> try_constant_of(ir::ValueId v) const;
  ir::Ints constant_ints(size_t i) const;  // an integer tensor of any rank, flattened
  std::vector<double> constant_reals(size_t i) const;
  int64_t constant_int(size_t i) const;  // the input must have one element
  double constant_real(size_t i) const;

  // Outputs. Every output for which wants() is true must be set.
  size_t output_count() const { return node_.outputs.size(); }
  bool wants(size_t i) const { return i < node_.outputs.size() && !node_.outputs[i].empty(); }
  void set(size_t i, Value value);
  // Returns the extent of dimension `dim` of an output, as the model declares it: a number, or a symbol whose value
  // comes from the options' shapes or from a guess. Returns nullopt if there is neither.
  std::optional<int64_t> declared_extent(size_t output, size_t dim) const;
  const std::vector<Value>& outputs() const { return outputs_; }

  // Subgraphs. Returns the names of enclosing scopes that `graph` and its subgraphs read, in order of first use.
  std::vector<std::string> captured_names(const GraphProto& graph) const;
  // Imports a subgraph into the graph that is being built. `inputs` are the values of the subgraph's inputs. Used for
  // unrolled loops and for branches with a constant condition.
  std::vector<Value> inline_graph(const GraphProto& graph, std::span<const Value> inputs);
  // Imports a subgraph as a separate graph. Its parameters are the formal inputs, with types `inputs`, followed by one
  // parameter for each captured tensor that is not a constant. All branches of an If must be imported with the same
  // `captures`: the union of the names that the branches capture.
  Body import_body(const GraphProto& graph, std::span<const ir::TensorType> inputs,
                   std::span<const std::string> captures);

  // The branches imported so far that cannot be built for these shapes. A run fails if it takes such a branch.
  std::vector<FailingBranch>& failing_branches();
  GraphImporter& importer() const { return importer_; }
  const std::string& label() const { return label_; }

  // The seed for a random operator without a seed attribute. Each node of a model has a different seed.
  uint64_t default_seed() const;
  // Makes a negative axis, which counts from the end, non-negative. Throws kInvalidNode if out of range.
  int64_t axis(int64_t axis, int64_t rank) const;
  ir::Ints axes(ir::Ints axes, int64_t rank) const;  // normalised and sorted; duplicates are an error

 private:
  GraphImporter& importer_;
  const NodeProto& node_;
  int64_t version_;
  std::vector<Value> inputs_;
  std::vector<Value> outputs_;
  std::string label_;
};

}  // namespace heddle::onnx
