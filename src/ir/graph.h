#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/attrs.h"
#include "ir/op.h"

namespace heddle::ir {

using ValueId = uint32_t;
using NodeId = uint32_t;
using OriginId = uint32_t;

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;
  bool operator==(const TensorType&) const = default;
};

// Formats a type: "f32[1,3,224,224]".
std::string to_string(const TensorType& type);

struct Value {
  TensorType type;
  NodeId producer = 0;
  uint32_t index = 0;  // position among the results of the producer
  uint32_t uses = 0;   // number of node operands that are this value; graph outputs are not uses
};

// The model node that an IR node comes from. Fused and rewritten nodes have several origins.
struct Origin {
  std::string node;     // name in the model, or "<op_type>_<position>" if it has none
  std::string op_type;  // "LayerNormalization"
  bool operator==(const Origin&) const = default;
};

struct Node {
  Op op;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Attrs attrs;
  std::vector<OriginId> origins;
};

// A graph of primitives in SSA form with static shapes. It is append-only: the operands of a node exist before it, so
// nodes() is always a topological order. Passes rebuild the graph (ir/rewrite.h) instead of mutating it. Parameters and
// constants are nodes too. The body of a loop or branch is a separate Graph, held as an attribute of the node. A body
// reads values of the outer graph only through the parameters of the body.
class Graph {
 public:
  static constexpr int32_t kNoAlias = -1;

  // Appends a node. The op's schema checks operand count, attributes and types and derives the result types.
  // Throws kInvalidNode naming the rule; `origins` must be ids of this graph.
  NodeId add(Op op, std::vector<ValueId> inputs, Attrs attrs = {}, std::vector<OriginId> origins = {});
  // Does the same as add() for an op with one result, and returns that result.
  ValueId emit(Op op, std::vector<ValueId> inputs, Attrs attrs = {}, std::vector<OriginId> origins = {});

  ValueId parameter(std::string name, TensorType type);
  // Adds a parameter with the attributes of another graph's parameter.
  ValueId parameter(Attrs attrs);
  ValueId constant(Tensor value, std::vector<OriginId> origins = {});
  // Marks a value as the next output. One value may be several outputs; names are unique. `alias` is the position of
  // the parameter whose memory the output shares (see Port). The parameter must have the output's type, and no other
  // output may share the parameter's memory.
  void output(std::string name, ValueId value, int32_t alias = kNoAlias);
  // Makes output `output` share the memory of parameter `input`, or of no parameter (kNoAlias).
  void set_alias(size_t output, int32_t input);
  // Makes another value an output, under the same name.
  void set_output(size_t output, ValueId value) { outputs_[output].value = value; }

  OriginId origin(Origin origin);  // interned
  // Adopts the whole origin table of another graph, so that the other graph's origin ids are valid here. This graph
  // must not have any origins yet.
  void adopt_origins(const Graph& other);
  const Origin& origin(OriginId id) const { return origins()[id]; }
  const std::vector<Origin>& origins() const;

  // References to nodes and types stay valid while the graph grows.
  const std::deque<Node>& nodes() const { return nodes_; }
  const Node& node(NodeId id) const { return nodes_[id]; }
  const Value& value(ValueId id) const { return values_[id]; }
  size_t value_count() const { return values_.size(); }
  const TensorType& type(ValueId id) const { return values_[id].type; }
  const Shape& shape(ValueId id) const { return values_[id].type.shape; }
  DType dtype(ValueId id) const { return values_[id].type.dtype; }
  const Node& producer(ValueId id) const { return nodes_[values_[id].producer]; }
  // Returns the tensor of a value that a constant node produces; null for other values.
  const Tensor* constant_of(ValueId id) const;

  struct Port {
    std::string name;
    ValueId value;
    // For an output: the position of the parameter whose memory receives the output, so that the caller loses the
    // parameter's content. The alias does not change the value of the output.
    int32_t alias = kNoAlias;
  };
  const std::vector<Port>& inputs() const { return inputs_; }  // parameters, in order
  const std::vector<Port>& outputs() const { return outputs_; }

 private:
  struct OriginTable {
    std::vector<Origin> origins;
    std::unordered_multimap<size_t, OriginId> ids;  // by hash
  };

  std::deque<Node> nodes_;
  std::deque<Value> values_;
  std::shared_ptr<OriginTable> origins_;  // shared by graphs until one of them adds an origin; null: no origins
  std::vector<Port> inputs_, outputs_;
  std::unordered_set<std::string_view> input_names_;  // views of the names in the parameters' attributes
  std::unordered_set<std::string> output_names_;
};

// True if a scatter writes into the memory of its data operand, so that elements without an update need not be copied.
bool is_in_place(const Node& node);
// True if a concatenation copies nothing, because the kernels that compute its operands store them directly into the
// result (ir/analysis/placement.h).
bool joins_in_place(const Node& node);

// Returns, for every value, the nodes that read it. A node is listed once per operand. Graph outputs are not uses.
std::vector<std::vector<NodeId>> users(const Graph& graph);

}  // namespace heddle::ir
