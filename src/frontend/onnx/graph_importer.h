#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "frontend/onnx/extents/extent_search.h"
#include "frontend/onnx/extents/extents.h"
#include "frontend/onnx/fold.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/node_context.h"
#include "frontend/onnx/reader/budget.h"
#include "frontend/onnx/reader/tensor_data.h"

namespace heddle::onnx {

// Thrown to start the import again with these inputs of the model as constants.
struct SpecialiseInputs {
  std::set<std::string> names;
  std::string where;  // the node that needs their values
};

// State that all graphs of one import share.
struct ModelState {
  const ModelProto& model;
  const ImportOptions& options;
  TensorLoader& loader;
  Budget& budget;
  const Extents& extents;
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, const FunctionProto*> functions;
  std::set<std::string> specialised;  // inputs that are constants in this attempt
  uint64_t nodes_lowered = 0;
  std::vector<FailingBranch> failing_branches;  // of this attempt
  std::map<std::string, int64_t> guesses;       // of open extents
  std::vector<int64_t> stuck_at;                // extents of the operands of the node that failed last
  bool needs_value = false;                     // the value of an input is missing: no guess of extents helps
  std::vector<ExtentSum> sums;                  // of this attempt
};

// A function being expanded: the values of its attribute references, and its operator sets.
struct FunctionFrame {
  const FunctionProto* function = nullptr;  // null: the model's main graph
  const std::vector<OperatorSet>* opsets = nullptr;
  std::unordered_map<std::string_view, const AttributeProto*> attributes;
  std::string prefix;  // of node names, "outer/"
};

// The names of one ONNX graph.
struct Scope {
  Scope* parent = nullptr;  // the enclosing ONNX graph, if both become part of one ir::Graph
  const FunctionFrame* frame = nullptr;
  std::unordered_map<std::string_view, Value> values;
  std::unordered_map<std::string_view, const TensorProto*> initializers;  // loaded when first used
  std::unordered_map<std::string_view, const SparseTensorProto*> sparse_initializers;
};

// Lowers ONNX nodes into one ir::Graph.
class GraphImporter {
 public:
  GraphImporter(ModelState& state, ir::Graph& graph, GraphImporter* outer)
      : state_(state), builder_(graph), folder_(graph, state.budget), outer_(outer) {}

  // Runs the nodes of a graph in `scope`, whose inputs are bound, and returns its outputs.
  std::vector<Value> run(const GraphProto& graph, Scope& scope);

  ir::Builder& builder() { return builder_; }
  ModelState& state() { return state_; }
  Scope& scope() { return *scope_; }

  // NodeContext's services; see there.
  const AttributeProto* resolve(const AttributeProto* attribute) const;
  std::vector<std::string> captured_names(const GraphProto& graph) const;
  std::vector<Value> inline_graph(const GraphProto& graph, std::span<const Value> inputs);
  Body import_body(const GraphProto& graph, std::span<const ir::TensorType> inputs,
                   std::span<const std::string> captures);
  std::optional<Tensor> try_constant(ir::ValueId v);
  Tensor constant(ir::ValueId v, const NodeContext& asking);

  // Registers an input of the model, to which values may be traced back.
  void name_input(ir::ValueId parameter, std::string name) { input_names_.emplace(parameter, std::move(name)); }
  const std::unordered_map<ir::ValueId, std::string>& input_names() const { return input_names_; }
  // Finds a name here or in the enclosing scopes; null if it is not defined.
  const Value* lookup(std::string_view name);

 private:
  void declare_initializers(const GraphProto& graph, Scope& scope);
  void run_nodes(const std::vector<NodeProto>& nodes, Scope& scope);
  void lower(const NodeProto& node, size_t position);
  void note_extents(const NodeContext& ctx);
  std::vector<Value> call_function(const FunctionProto& function, const NodeProto& node, std::vector<Value> inputs,
                                   const std::string& label);
  std::vector<Value> read_inputs(const NodeProto& node, const std::string& label);
  void write_outputs(const NodeProto& node, const std::vector<Value>& outputs, const std::string& label);
  bool collect_roots(ir::ValueId v, std::set<std::string>& names);
  Value capture(const Value& outer_value, Body& body, GraphImporter& inner, const std::string& name);

  ModelState& state_;
  ir::Builder builder_;
  Folder folder_;
  GraphImporter* outer_;
  Scope* scope_ = nullptr;
  std::unordered_map<ir::ValueId, std::string> input_names_;
  std::unordered_map<ir::ValueId, ir::ValueId> captured_from_;  // parameter -> value of outer_'s graph
};

// Version of a domain in a list of operator sets; 0 if it is not imported.
int64_t version_of(const std::vector<OperatorSet>& opsets, std::string_view domain);

// "node 'conv1' (Conv)"; a node without a name is called <op_type>_<position>.
std::string node_label(const NodeProto& node, size_t position);

// The indices of the nodes in topological order. Throws kMalformedModel with the nodes of a cycle.
std::vector<size_t> topological_order(const std::vector<NodeProto>& nodes);

// The names that a graph (with the graphs inside it) reads from enclosing ones, in order of first use.
std::vector<std::string_view> free_names(const GraphProto& graph);

// Throws kLimit if expanding the functions of the model would give too many nodes or levels, and kMalformedModel if a
// function calls itself. It computes both without expanding.
void check_expansion(const ModelState& state);

// Throws kUnsupportedOperator with all nodes without a handler. If all nodes have one, throws kMalformedModel if the
// operator set of a domain is missing.
void check_supported(const ModelState& state);

}  // namespace heddle::onnx
