#include "ir/graph.h"

#include "base/check.h"
#include "ir/schema.h"

namespace heddle::ir {
namespace {

std::string describe(const Graph& graph, Op op, const std::vector<ValueId>& inputs,
                     const std::vector<OriginId>& origins) {
  std::vector<std::string> types;
  for (ValueId v : inputs) types.push_back(to_string(graph.type(v)));
  std::string text = fmt::format("{}({})", to_string(op), fmt::join(types, ", "));
  for (OriginId id : origins) text += fmt::format(" of {} ({})", graph.origin(id).node, graph.origin(id).op_type);
  return text;
}

size_t hash_of(const Origin& origin) {
  const std::hash<std::string> hash;
  return hash(origin.node) * 31 + hash(origin.op_type);
}

}  // namespace

std::string to_string(const TensorType& type) {
  return std::string(to_string(type.dtype)) + heddle::to_string(type.shape);
}

NodeId Graph::add(Op op, std::vector<ValueId> inputs, Attrs attrs, std::vector<OriginId> origins) {
  const OpSchema& s = schema(op);
  for (ValueId v : inputs) HEDDLE_CHECK(v < values_.size(), "{}: operand {} does not exist", to_string(op), v);
  const int count = static_cast<int>(inputs.size());
  if (count < s.min_inputs || (s.max_inputs >= 0 && count > s.max_inputs)) {
    fail(ErrorCode::kInvalidNode, describe(*this, op, inputs, origins),
         fmt::format("{} operands given, {} to {} expected", count, s.min_inputs, s.max_inputs));
  }
  for (const AttrSpec& spec : s.attrs) {
    const Attr* attr = attrs.find(spec.name);
    if (attr == nullptr ? spec.required : attr->index() != static_cast<size_t>(spec.kind)) {
      fail(ErrorCode::kInvalidNode, describe(*this, op, inputs, origins),
           fmt::format("attribute {} {}", spec.name, attr == nullptr ? "is missing" : "has the wrong kind"));
    }
  }
  std::vector<const TensorType*> operand_types;
  operand_types.reserve(inputs.size());
  for (ValueId v : inputs) operand_types.push_back(&type(v));
  std::vector<TensorType> results;
  try {
    results = s.infer({op, OperandTypes(operand_types), attrs});
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) throw;
    fail(error.code(), describe(*this, op, inputs, origins), error.why(), error.remedy());
  }
  const auto id = static_cast<NodeId>(nodes_.size());
  std::vector<ValueId> outputs;
  for (uint32_t i = 0; i < results.size(); ++i) {
    element_count(results[i].shape);  // throws on overflow
    outputs.push_back(static_cast<ValueId>(values_.size()));
    values_.push_back({std::move(results[i]), id, i, 0});
  }
  for (ValueId v : inputs) ++values_[v].uses;
  nodes_.push_back({op, std::move(inputs), std::move(outputs), std::move(attrs), std::move(origins)});
  return id;
}

ValueId Graph::emit(Op op, std::vector<ValueId> inputs, Attrs attrs, std::vector<OriginId> origins) {
  const NodeId id = add(op, std::move(inputs), std::move(attrs), std::move(origins));
  HEDDLE_CHECK(nodes_[id].outputs.size() == 1, "{} has {} results", to_string(op), nodes_[id].outputs.size());
  return nodes_[id].outputs[0];
}

ValueId Graph::parameter(std::string name, TensorType type) {
  return parameter({{"name", std::move(name)}, {"dtype", type.dtype}, {"shape", std::move(type.shape)}});
}

ValueId Graph::parameter(Attrs attrs) {
  if (input_names_.contains(attrs.text("name"))) {
    fail(ErrorCode::kInvalidNode, "parameter " + attrs.text("name"), "two inputs of the graph have this name");
  }
  const ValueId value = emit(Op::kParameter, {}, std::move(attrs));
  const std::string& name = producer(value).attrs.text("name");
  input_names_.insert(name);
  inputs_.push_back({name, value});
  return value;
}

ValueId Graph::constant(Tensor value, std::vector<OriginId> origins) {
  return emit(Op::kConstant, {}, {{"value", std::move(value)}}, std::move(origins));
}

void Graph::output(std::string name, ValueId value, int32_t alias) {
  HEDDLE_CHECK(value < values_.size());
  if (!output_names_.insert(name).second) {
    fail(ErrorCode::kInvalidNode, "output " + name, "two outputs of the graph have this name");
  }
  outputs_.push_back({std::move(name), value});
  if (alias != kNoAlias) set_alias(outputs_.size() - 1, alias);
}

void Graph::set_alias(size_t output, int32_t input) {
  Port& port = outputs_.at(output);
  const std::string where = "output " + port.name;
  if (input == kNoAlias) {
    port.alias = kNoAlias;
    return;
  }
  HEDDLE_CHECK(input >= 0 && static_cast<size_t>(input) < inputs_.size());
  const Port& given = inputs_[static_cast<size_t>(input)];
  if (type(port.value) != type(given.value)) {
    fail(ErrorCode::kInvalidNode, where,
         fmt::format("it is {} and cannot share the memory of input {}, which is {}", to_string(type(port.value)),
                     given.name, to_string(type(given.value))));
  }
  for (const Port& other : outputs_) {
    if (&other == &port || other.alias != input) continue;
    fail(ErrorCode::kInvalidNode, where,
         fmt::format("it cannot share the memory of input {}, which output {} has", given.name, other.name));
  }
  port.alias = input;
}

OriginId Graph::origin(Origin origin) {
  const size_t hash = hash_of(origin);
  if (origins_ == nullptr) origins_ = std::make_shared<OriginTable>();
  const auto [first, last] = origins_->ids.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    if (origins_->origins[at->second] == origin) return at->second;
  }
  if (origins_.use_count() != 1) origins_ = std::make_shared<OriginTable>(*origins_);
  const auto id = static_cast<OriginId>(origins_->origins.size());
  origins_->origins.push_back(std::move(origin));
  origins_->ids.emplace(hash, id);
  return id;
}

void Graph::adopt_origins(const Graph& other) {
  HEDDLE_CHECK(origins().empty(), "this graph has origins of its own");
  origins_ = other.origins_;
}

const std::vector<Origin>& Graph::origins() const {
  static const std::vector<Origin> none;
  return origins_ == nullptr ? none : origins_->origins;
}

const Tensor* Graph::constant_of(ValueId id) const {
  const Node& node = producer(id);
  return node.op == Op::kConstant ? &node.attrs.tensor("value") : nullptr;
}

bool is_in_place(const Node& node) {
  const bool scatters = node.op == Op::kScatterElements || node.op == Op::kScatterNd;
  return scatters && node.attrs.has("in_place") && node.attrs.flag("in_place");
}

bool joins_in_place(const Node& node) {
  return node.op == Op::kConcat && node.attrs.has("in_place") && node.attrs.flag("in_place");
}

std::vector<std::vector<NodeId>> users(const Graph& graph) {
  std::vector<std::vector<NodeId>> result(graph.value_count());
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    for (ValueId v : graph.node(id).inputs) result[v].push_back(id);
  }
  return result;
}

}  // namespace heddle::ir
