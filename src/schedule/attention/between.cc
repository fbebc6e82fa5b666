#include "schedule/attention/between.h"

#include <algorithm>

#include "base/check.h"

namespace heddle::schedule {
namespace {

bool may_lie_between(const Node& node) {
  return ir::is_elementwise(node.op) || ir::class_of(node.op) == ir::OpClass::kLayout || node.op == Op::kReduce;
}

}  // namespace

std::vector<bool> NodesBetween::find_exponentials(const ir::Graph& graph) {
  std::vector<bool> found(graph.nodes().size());
  for (NodeId id = 0; id < found.size(); ++id) {
    const Node& node = graph.node(id);
    found[id] = node.op == Op::kExp ||
                (may_lie_between(node) && std::any_of(node.inputs.begin(), node.inputs.end(),
                                                      [&](ir::ValueId v) { return found[graph.value(v).producer]; }));
  }
  return found;
}

bool NodesBetween::look_above(ir::ValueId value) {
  constexpr size_t kMostNodes = 512;  // and too many to be what lies between two products
  std::vector<NodeId> open{graph_.value(value).producer};
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (!above_.insert(id).second) continue;
    if (above_.size() > kMostNodes) return false;
    const Node& node = graph_.node(id);
    if (!may_lie_between(node)) continue;
    for (const ir::ValueId v : node.inputs) open.push_back(graph_.value(v).producer);
  }
  find_dependent();
  return true;
}

std::vector<NodeId> NodesBetween::products() const {
  std::set<NodeId> feeding;  // exponentials, and what they are computed from
  std::vector<NodeId> result;
  for (auto at = above_.rbegin(); at != above_.rend(); ++at) {
    const Node& node = graph_.node(*at);
    if (node.op != Op::kExp && !feeding.contains(*at)) continue;
    if (node.op == Op::kDot) {
      result.push_back(*at);
      continue;
    }
    for (const ir::ValueId v : node.inputs) feeding.insert(graph_.value(v).producer);
  }
  return result;
}

void NodesBetween::set_product(NodeId product) {
  product_ = product;
  dependent_.clear();
  find_dependent();
}

void NodesBetween::find_dependent() {
  for (const NodeId id : above_) {
    const Node& node = graph_.node(id);
    if (id <= product_ || node.op == Op::kDot) continue;
    const bool found = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ir::ValueId v) {
      const NodeId producer = graph_.value(v).producer;
      return producer == product_ || dependent_.contains(producer);
    });
    if (found) dependent_.insert(id);
  }
}

bool NodesBetween::sums_exponentials() const {
  std::set<NodeId> below;  // exponentials and what is computed from them
  const auto reads = [&](const Node& node) {
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](ir::ValueId v) { return below.contains(graph_.value(v).producer); });
  };
  for (const NodeId id : dependent_) {
    const Node& node = graph_.node(id);
    if (node.op == Op::kExp || reads(node)) below.insert(id);
  }
  if (below.empty()) return false;
  // The sum may be what the second product is divided by, a few nodes further.
  constexpr size_t kMostFurther = 256;
  const auto end = static_cast<NodeId>(std::min(graph_.nodes().size(), *below.rbegin() + kMostFurther));
  for (NodeId id = *below.begin(); id < end; ++id) {
    const Node& node = graph_.node(id);
    if (node.op == Op::kReduce && node.attrs.text("kind") == "sum" && reads(node)) return true;
    if ((node.op == Op::kCast || node.op == Op::kReshape) && reads(node)) below.insert(id);
  }
  return false;
}

Index KeyExprs::key_in(int64_t extent) {
  return extent > keys ? pool.indices.offset(key_at, first_) : key_at;
}

std::optional<ExprId> KeyExprs::bind(ir::ValueId value, const std::vector<Index>& at) {
  const NodeId id = graph_.value(value).producer;
  const Node& node = graph_.node(id);
  if (id == nodes_.product()) {
    product_at.insert(at);
    return pool.local(DType::kF32, 0, pool.indices.linear(at, graph_.shape(value)));
  }
  if (nodes_.depends(id)) return node.op == Op::kReduce ? std::optional(reduce(node, at)) : std::nullopt;
  if (!reads_(value)) return std::nullopt;
  if (const Tensor* constant = graph_.constant_of(value)) {
    if (splat_of(pool, *constant)) return std::nullopt;
  }
  return pool.load(graph_.dtype(value), value, pool.indices.linear(at, graph_.shape(value)));
}

ExprId KeyExprs::reduce(const Node& node, const std::vector<Index>& at) {
  const Shape& shape = graph_.shape(node.inputs[0]);
  const auto& dims = node.attrs.ints("dims");
  auto reduced = static_cast<size_t>(dims[0]);
  for (const int64_t dim : dims) {
    const auto d = static_cast<size_t>(dim);
    if (shape[d] != 1 && shape[reduced] != 1 && d != reduced) {
      fail(ErrorCode::kUnsupportedOperator, "attention", "its reductions are over several dimensions");
    }
    if (shape[d] != 1) reduced = d;
  }
  constexpr int64_t kMostSinks = 8;
  const int64_t extent = shape[reduced];
  if (extent < keys || extent > keys + kMostSinks) {
    fail(ErrorCode::kUnsupportedOperator, "attention", "its reductions are not over the keys");
  }
  std::vector<Index> index(shape.size());
  for (size_t d = 0, next = 0; d < shape.size(); ++d) {
    if (!std::binary_search(dims.begin(), dims.end(), static_cast<int64_t>(d))) index[d] = at[next++];
  }
  index[reduced] = key_in(extent);
  KeyReduction reduction{node.attrs.text("kind"), this->at(node.inputs[0], index), {}};
  for (int64_t i = 0; i < extent; ++i) {
    if (extent == keys || (i >= first_ && i < first_ + keys)) continue;
    index[reduced] = IndexPool::constant(i);
    reduction.further.push_back(this->at(node.inputs[0], index));
  }
  reductions.push_back(std::move(reduction));
  const ir::ValueId result = node.outputs[0];
  return pool.local(graph_.dtype(result), static_cast<uint32_t>(reductions.size()),
                    pool.indices.linear(at, graph_.shape(result)));
}

}  // namespace heddle::schedule
