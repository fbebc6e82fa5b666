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

// "f32[1,3,224,224]"
std::string to_string(const TensorType& type);

struct Value {
  TensorType type;
  NodeId producer = 0;
  uint32_t index = 0;  // which output of the producer
  uint32_t uses = 0;   // operands of nodes that it is; outputs of the graph are not uses
};

// The model's node that an IR node comes from. Fused and rewritten nodes carry several.
struct Origin {
  std::string node;     // name in the model, or "<op_type>_<position>" where it has none
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

// A graph of primitives in SSA form with static shapes. It is append-only: a node's operands exist before it, so
// nodes() is always a topological order and passes rebuild (ir/rewrite.h) instead of mutating. Parameters and constants
// are nodes too. A body of a loop or a branch is a Graph of its own, held as an attribute; it sees nothing of the outer
// graph except through its parameters.
class Graph {
 public:
  static constexpr int32_t kNoAlias = -1;

  // Appends a node. The op's schema checks operand count, attributes and types and derives the result types.
  // Throws kInvalidNode naming the rule; `origins` must be ids of this graph.
  NodeId add(Op op, std::vector<ValueId> inputs, Attrs attrs = {}, std::vector<OriginId> origins = {});
  // The same for ops with one result, returning it.
  ValueId emit(Op op, std::vector<ValueId> inputs, Attrs attrs = {}, std::vector<OriginId> origins = {});

  ValueId parameter(std::string name, TensorType type);
  // A parameter that has the attributes of another graph's parameter.
  ValueId parameter(Attrs attrs);
  ValueId constant(Tensor value, std::vector<OriginId> origins = {});
  // Marks a value as the next output. One value may be several outputs; names are unique. `alias`: the position of the
  // parameter whose memory the output is to share (see Port), of the same type and of no other output.
  void output(std::string name, ValueId value, int32_t alias = kNoAlias);
  // Makes output `output` share the memory of parameter `input`, or of none (kNoAlias).
  void set_alias(size_t output, int32_t input);

  OriginId origin(Origin origin);  // interned
  // Takes over the whole table of another graph, so that its ids are valid here. This graph must have none yet.
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
  // The constant behind a value, or null.
  const Tensor* constant_of(ValueId id) const;

  struct Port {
    std::string name;
    ValueId value;
    // Of an output: the parameter that the caller gives up, since the output is written to its memory. It says nothing
    // about the value, which is what it would be in memory of its own.
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
  std::shared_ptr<OriginTable> origins_;  // graphs share it until one of them has more; null: none
  std::vector<Port> inputs_, outputs_;
  std::unordered_set<std::string_view> input_names_;  // in the attributes of the parameters
  std::unordered_set<std::string> output_names_;
};

// Whether a scatter writes to the memory of its data, of which it leaves what has no update.
bool is_in_place(const Node& node);
// Whether a concatenation moves nothing: what makes its parts stores them where they lie in the result
// (ir/analysis/placement.h).
bool joins_in_place(const Node& node);

// For every value, the nodes that read it (a node appears once per operand). Graph outputs are not uses.
std::vector<std::vector<NodeId>> users(const Graph& graph);

}  // namespace heddle::ir
