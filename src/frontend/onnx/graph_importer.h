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

// Thrown to restart the import with the model inputs `names` as constants.
struct SpecialiseInputs {
  std::set<std::string> names;
  std::string where;  // the node that needs their values
};

// State shared by all graphs of one import.
struct ModelState {
  const ModelProto& model;
  const ImportOptions& options;
  TensorLoader& loader;
  Budget& budget;
  const Extents& extents;
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, const FunctionProto*> functions;
  std::set<std::string> specialised;  // inputs that are constants in this attempt to import
  uint64_t nodes_lowered = 0;
  std::vector<FailingBranch> failing_branches;  // in this attempt
  std::map<std::string, int64_t> guesses;       // the guessed extents
  std::vector<int64_t> stuck_at;                // extents of the operands of the node that failed last
  bool needs_value = false;                     // the value of an input is missing, so guessing extents does not help
  std::vector<ExtentSum> sums;                  // in this attempt
};

// An ONNX function while it is expanded: the values of its attribute references, and its operator sets.
struct FunctionFrame {
  const FunctionProto* function = nullptr;  // null: the model's main graph
  const std::vector<OperatorSet>* opsets = nullptr;
  std::unordered_map<std::string_view, const AttributeProto*> attributes;
  std::string prefix;  // prefix of node names, such as "outer/"
};

// The names defined in one ONNX graph.
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

  // Imports the nodes of a graph and returns its outputs. `scope` already contains the graph's inputs.
  std::vector<Value> run(const GraphProto& graph, Scope& scope);

  ir::Builder& builder() { return builder_; }
  ModelState& state() { return state_; }
  Scope& scope() { return *scope_; }

  // These functions implement NodeContext; see there.
  const AttributeProto* resolve(const AttributeProto* attribute) const;
  std::vector<std::string> captured_names(const GraphProto& graph) const;
  std::vector<Value> inline_graph(const GraphProto& graph, std::span<const Value> inputs);
  Body import_body(const GraphProto& graph, std::span<const ir::TensorType> inputs,
                   std::span<const std::string> captures);
  std::optional<Tensor> try_constant(ir::ValueId v);
  Tensor constant(ir::ValueId v, const NodeContext& asking);

  // Registers an input of the model, so that messages can name the inputs that a value depends on.
  void name_input(ir::ValueId parameter, std::string name) { input_names_.emplace(parameter, std::move(name)); }
  const std::unordered_map<ir::ValueId, std::string>& input_names() const { return input_names_; }
  // Looks up a name here and in the enclosing scopes. Returns null if it is not defined.
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
  std::unordered_map<ir::ValueId, ir::ValueId> captured_from_;  // maps a parameter to the value in outer_'s graph
};

// Returns the version of `domain` in a list of operator sets; 0 if the list lacks the domain.
int64_t version_of(const std::vector<OperatorSet>& opsets, std::string_view domain);

// Returns a label such as "node 'conv1' (Conv)". A node without a name is called <op_type>_<position>.
std::string node_label(const NodeProto& node, size_t position);

// Returns the indices of the nodes in topological order. Throws kMalformedModel if there is a cycle; the error names
// its nodes.
std::vector<size_t> topological_order(const std::vector<NodeProto>& nodes);

// Returns the names that a graph (including its subgraphs) uses from enclosing graphs, in order of first use.
std::vector<std::string_view> free_names(const GraphProto& graph);

// Throws kLimit if expanding the model's functions would give too many nodes or nesting levels. Throws kMalformedModel
// if a function calls itself. Expands no function for these checks.
void check_expansion(const ModelState& state);

// Throws kUnsupportedOperator if some nodes have no handler; the error lists all of them. Otherwise throws
// kMalformedModel if the model does not import the operator set of a domain that it uses.
void check_supported(const ModelState& state);

}  // namespace heddle::onnx
