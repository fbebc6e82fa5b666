#include "ir/rewrite.h"

#include <algorithm>

#include "base/check.h"

namespace heddle::ir {

std::vector<bool> live_nodes(const Graph& graph) {
  std::vector<bool> live(graph.nodes().size());
  for (const Graph::Port& port : graph.outputs()) live[graph.value(port.value).producer] = true;
  for (size_t id = live.size(); id-- > 0;) {
    const Node& node = graph.node(static_cast<NodeId>(id));
    if (node.op == Op::kParameter) live[id] = true;
    if (!live[id]) continue;
    for (ValueId v : node.inputs) live[graph.value(v).producer] = true;
  }
  return live;
}

Graph drop_dead(const Graph& graph) {
  const std::vector<bool> live = live_nodes(graph);
  if (std::find(live.begin(), live.end(), false) == live.end()) return graph;
  return Rewriter(graph).run([](Rewriter&, const Node&) { return std::nullopt; });
}

Rewriter::Rewriter(const Graph& source) : source_(source), map_(source.value_count(), kNone) {
  target_.adopt_origins(source);
}

Graph Rewriter::run(const Visit& visit) {
  const std::vector<bool> live = live_nodes(source_);
  for (NodeId id = 0; id < source_.nodes().size(); ++id) {
    const Node& node = source_.node(id);
    if (node.op == Op::kParameter) {
      map_[node.outputs[0]] = target_.parameter(node.attrs);
      continue;
    }
    if (!live[id]) continue;
    current_origins_ = node.origins;
    std::optional<std::vector<ValueId>> results = visit(*this, node);
    if (!results) {
      const NodeId added = target_.add(node.op, (*this)(node.inputs), node.attrs, node.origins);
      results = target_.node(added).outputs;
    }
    HEDDLE_CHECK(results->size() == node.outputs.size(), "{} was replaced by {} values", to_string(node.op),
                 results->size());
    for (size_t i = 0; i < results->size(); ++i) {
      const TensorType& is = target_.type((*results)[i]);
      const TensorType& was = source_.type(node.outputs[i]);
      HEDDLE_CHECK(is == was, "{} : {} was replaced by a value of type {}", to_string(node.op), to_string(was),
                   to_string(is));
      map_[node.outputs[i]] = (*results)[i];
    }
  }
  for (const Graph::Port& port : source_.outputs()) target_.output(port.name, (*this)(port.value), port.alias);
  const std::vector<bool> needed = live_nodes(target_);
  return std::find(needed.begin(), needed.end(), false) == needed.end() ? std::move(target_) : drop_dead(target_);
}

ValueId Rewriter::operator()(ValueId source_value) const {
  HEDDLE_CHECK(source_value < map_.size() && map_[source_value] != kNone, "value {} was not visited", source_value);
  return map_[source_value];
}

std::vector<ValueId> Rewriter::operator()(std::span<const ValueId> source_values) const {
  std::vector<ValueId> result;
  result.reserve(source_values.size());
  for (ValueId v : source_values) result.push_back((*this)(v));
  return result;
}

ValueId Rewriter::emit(Op op, std::vector<ValueId> target_inputs, Attrs attrs) {
  return target_.emit(op, std::move(target_inputs), std::move(attrs), current_origins_);
}

ValueId Rewriter::constant(Tensor value) {
  return target_.constant(std::move(value), current_origins_);
}

std::vector<ValueId> Rewriter::copy(const Node& node) {
  const std::vector<OriginId> saved = current_origins_;
  also_from(node);
  const NodeId id = target_.add(node.op, (*this)(node.inputs), node.attrs, current_origins_);
  current_origins_ = saved;
  return target_.node(id).outputs;
}

void Rewriter::also_from(const Node& source_node) {
  for (OriginId id : source_node.origins) {
    if (std::find(current_origins_.begin(), current_origins_.end(), id) == current_origins_.end()) {
      current_origins_.push_back(id);
    }
  }
}

}  // namespace heddle::ir
