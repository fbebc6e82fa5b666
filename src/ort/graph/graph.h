#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/tensor.h"
#include "ort/runtime.h"

namespace heddle::ort {

// The number of an element type in ONNX files, for that of ONNX Runtime's interface. 0 if it is no tensor element.
int onnx_type_of(int element);
// The element type with this number in ONNX Runtime's interface. std::nullopt if Heddle has no such type.
std::optional<DType> dtype_of(int element);

// A value of a graph of ONNX Runtime.
struct GraphValue {
  std::string name;
  const OrtValueInfo* info = nullptr;
  int element = 0;         // the element type in ONNX Runtime's interface; 0 if it is no tensor
  bool has_shape = false;  // the rank is known
  std::vector<int64_t> extents;
  std::vector<std::string> symbols;  // of the extents that are -1; "" if unnamed
  bool is_constant = false;          // an initialiser that nothing overrides
  bool is_output = false;            // of the graph
  bool is_outer = false;             // an enclosing graph defines it
  // Another node of the session may compute it, so that its shape is what ONNX Runtime infers, which may be wrong.
  bool is_inferred = false;
};

struct Graph;

// A graph that a node of control flow runs.
struct GraphBody {
  std::string attribute;
  std::shared_ptr<const Graph> graph;
};

struct GraphNode {
  const OrtNode* node = nullptr;
  std::string name, op_type, domain;
  std::vector<size_t> inputs, outputs;  // indices of values; kNone for one that is left out
  std::vector<size_t> captured;         // values that the bodies of the node read
  std::vector<GraphBody> bodies;
  bool is_assigned = false;  // a provider has taken it already, maybe this one
};

inline constexpr size_t kNone = static_cast<size_t>(-1);

// The content of one of ONNX Runtime's graphs, as long as that exists.
struct Graph {
  std::string name, path;  // path: of the model's file; "" if it was read from memory
  std::vector<std::pair<std::string, int64_t>> opsets;
  std::vector<GraphValue> values;
  std::vector<size_t> inputs, outputs;    // indices of values; a body's are in the order of its node
  std::vector<GraphNode> nodes;           // in topological order
  std::vector<size_t> producers;          // by value: the index of its node; kNone for inputs and constants
  std::vector<std::vector<size_t>> uses;  // by value: the nodes that read it, in their order
};

Graph read_graph(const Runtime& runtime, const OrtGraph* graph);
// The loop that `body`, read from `handle`, is the body of, as a graph of this one node. std::nullopt if there is none.
std::optional<Graph> read_loop(const Runtime& runtime, const OrtGraph* handle, const Graph& body);

// Names of the inputs and outputs of a node, without those that are left out.
std::vector<std::string> input_names(const Runtime& runtime, const OrtNode* node);
std::vector<std::string> output_names(const Runtime& runtime, const OrtNode* node);

// The bytes of an attribute's value. The strings of a list end with zeros.
std::string attribute_content(const Runtime& runtime, const OrtOpAttr* attribute, AttributeType type);
// The value of a text attribute or of the first number of an attribute; a default if the node lacks it.
std::string text_attribute(const Runtime& runtime, const OrtNode* node, const char* name);
int64_t int_attribute(const Runtime& runtime, const OrtNode* node, const char* name, int64_t otherwise);

// Some nodes of a graph, as one function: the values that it takes, without constants, and those that others read.
struct Region {
  std::vector<size_t> nodes;  // ascending
  std::vector<size_t> inputs, outputs;
};
Region region_of(const Graph& graph, std::vector<size_t> nodes);

// True if the shape of the input is known, but another may come.
bool has_inferred_shape(const GraphValue& input);
std::map<std::string, Shape> inferred_shapes(const Graph& graph, const Region& region);

}  // namespace heddle::ort
