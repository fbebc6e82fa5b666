#include "schedule/attention/chain.h"

#include <algorithm>

#include "base/check.h"

namespace heddle::schedule {

void refuse_attention(const std::string& why) {
  fail(ErrorCode::kUnsupportedOperator, "attention", why);
}

namespace {

// A dimension that could not be read through strides was cut, or operands are not to be read as pages: what was made so
// far is void.
struct ReadAgain {};

bool is_view(Op op) {
  return op == Op::kTranspose || op == Op::kReshape || op == Op::kBroadcast || op == Op::kSlice;
}

bool is_splat(const ir::Graph& graph, ValueId v) {
  while (graph.producer(v).op == Op::kBroadcast || graph.producer(v).op == Op::kReshape)
    v = graph.producer(v).inputs[0];
  const Tensor* constant = graph.constant_of(v);
  ExprPool pool;
  return constant != nullptr && splat_of(pool, *constant).has_value();
}

// The indices of a dot's operand from those of its roles.
std::vector<Index> gather_dims(
    std::initializer_list<std::pair<const std::vector<int64_t>*, std::vector<Index>>> roles) {
  size_t rank = 0;
  for (const auto& [dims, indices] : roles) rank += dims->size();
  std::vector<Index> at(rank);
  for (const auto& [dims, indices] : roles) {
    for (size_t i = 0; i < dims->size(); ++i) at[static_cast<size_t>((*dims)[i])] = indices[i];
  }
  return at;
}

}  // namespace

Chain::Side::Side(const ir::Graph& graph, const Node& dot, size_t operand)
    : batch(dot.attrs.ints(operand == 0 ? "lhs_batch" : "rhs_batch")),
      contract(dot.attrs.ints(operand == 0 ? "lhs_contract" : "rhs_contract")) {
  const Shape& shape = graph.shape(dot.inputs[operand]);
  const auto has = [](const std::vector<int64_t>& list, size_t d) {
    return std::find(list.begin(), list.end(), static_cast<int64_t>(d)) != list.end();
  };
  for (size_t d = 0; d < shape.size(); ++d) {
    if (has(batch, d) || has(contract, d)) continue;
    free.push_back(static_cast<int64_t>(d));
    free_shape.push_back(shape[d]);
  }
  for (const int64_t d : contract) contract_shape.push_back(shape[static_cast<size_t>(d)]);
}

Chain::Chain(const ChainProblem& problem, const NodesBetween& nodes, int64_t first_key)
    : problem_(problem),
      scores_sides_{{problem.graph, scores_dot(), 0}, {problem.graph, scores_dot(), 1}},
      weight_dims_(problem.graph, values_dot(), problem.weights),
      value_dims_(problem.graph, values_dot(), 1 - problem.weights) {
  if (problem.group != nullptr) group_nodes_.insert(problem.group->nodes.begin(), problem.group->nodes.end());
  make_axes();
  constexpr int kMostRounds = 16;
  for (int round = 0;; ++round) {
    try {
      read(nodes, first_key);
      return;
    } catch (const ReadAgain&) {
      if (round == kMostRounds) refuse_attention("its operands are no strided views");
    }
  }
}

// The dimensions of the weights are the loops; of those that are summed over one may be longer than 1.
void Chain::make_axes() {
  const Shape& shape = problem_.graph.shape(weights());
  auto key = static_cast<size_t>(weight_dims_.contract.at(0));
  for (const int64_t dim : weight_dims_.contract) {
    const auto d = static_cast<size_t>(dim);
    if (shape[d] != 1 && shape[key] != 1 && d != key)
      refuse_attention("its second product sums over several dimensions");
    if (shape[d] != 1) key = d;
  }
  const int64_t width = element_count(value_dims_.free_shape), depth = element_count(scores_sides_[0].contract_shape);
  if (element_count(shape) == 0 || width == 0 || depth == 0) refuse_attention("it is empty");
  axes_.emplace(shape[key], width, depth);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d == key) {
      axes_->add_key_dim();
    } else {
      axes_->add_dim(shape[d]);
    }
  }
}

std::vector<ChainAxes::Id> Chain::loops() const {
  std::vector<ChainAxes::Id> result;
  for (size_t d = 0; d < problem_.graph.shape(weights()).size(); ++d) {
    for (const ChainAxes::Id axis : axes_->dim(d)) {
      if (axis != ChainAxes::kKey) result.push_back(axis);
    }
  }
  return result;
}

std::vector<Index> Chain::dims_at(IndexPool& pool, const std::vector<int64_t>& dims,
                                  const std::vector<Index>& axes) const {
  std::vector<Index> at;
  for (const int64_t d : dims) at.push_back(axes_->index(pool, static_cast<size_t>(d), axes));
  return at;
}

std::vector<Index> Chain::weights_at(IndexPool& pool, const std::vector<Index>& axes) const {
  std::vector<Index> at;
  for (size_t d = 0; d < problem_.graph.shape(weights()).size(); ++d) at.push_back(axes_->index(pool, d, axes));
  return at;
}

std::vector<Index> Chain::result_at(IndexPool& pool, const std::vector<Index>& axes) const {
  std::vector<Index> at = dims_at(pool, weight_dims_.batch, axes), rows = dims_at(pool, weight_dims_.free, axes);
  std::vector<Index> columns = pool.delinear(axes[ChainAxes::kWidth], value_dims_.free_shape);
  if (problem_.weights == 1) std::swap(rows, columns);
  at.insert(at.end(), rows.begin(), rows.end());
  at.insert(at.end(), columns.begin(), columns.end());
  return at;
}

bool Chain::is_read(ValueId value) const {
  const NodeId id = problem_.graph.value(value).producer;
  const Node& node = problem_.graph.node(id);
  if (node.op == Op::kBroadcast && is_splat(problem_.graph, value)) return false;
  if (problem_.group != nullptr) return !is_in_group(id);
  return !is_view(node.op) && node.op != Op::kCast && node.op != Op::kConcat;
}

void Chain::read(const NodesBetween& nodes, int64_t first_key) {
  views.clear();
  KeyExprs exprs(
      nodes, [this](ValueId value) { return is_read(value); }, first_key);
  IndexPool& indices = exprs.pool.indices;
  const std::vector<Index> axes = axes_->variables(indices);
  exprs.key = ChainAxes::kKey, exprs.keys = axes_->extent(ChainAxes::kKey), exprs.key_at = axes[ChainAxes::kKey];
  exprs.at(weights(), weights_at(indices, axes));
  if (exprs.product_at.size() != 1) refuse_attention("a score is made of several products");
  const std::vector<Index> product = *exprs.product_at.begin();
  for (const Index& index : product) {
    if (strides_of(indices, index)) continue;
    if (axes_->split_for(indices, index)) throw ReadAgain();
    refuse_attention("its scores are no view of the first product");
  }
  const size_t key_side = side_of_keys(indices, product);
  const auto operand = [&](size_t i, bool in_pages) {
    const Side& side = scores_sides_[i];
    const auto batch_end = product.begin() + static_cast<int64_t>(side.batch.size());
    const auto lhs_end = batch_end + static_cast<int64_t>(scores_sides_[0].free.size());
    return read_operand(exprs.pool, scores_dot().inputs[i], problem_.scores_product,
                        gather_dims({{&side.batch, {product.begin(), batch_end}},
                                     {&side.free, i == 0 ? std::vector<Index>(batch_end, lhs_end)
                                                         : std::vector<Index>(lhs_end, product.end())},
                                     {&side.contract, indices.delinear(axes[ChainAxes::kDepth], side.contract_shape)}}),
                        in_pages);
  };
  q = operand(1 - key_side, false);
  k = operand(key_side, in_pages_);
  v = read_operand(
      exprs.pool, values_dot().inputs[1 - problem_.weights], problem_.values_product,
      gather_dims({{&value_dims_.batch, dims_at(indices, weight_dims_.batch, axes)},
                   {&value_dims_.contract, dims_at(indices, weight_dims_.contract, axes)},
                   {&value_dims_.free, indices.delinear(axes[ChainAxes::kWidth], value_dims_.free_shape)}}),
      in_pages_);
  if (k.table == v.table) return;
  if (!in_pages_) refuse_attention("its keys and its values lie in different pages");
  in_pages_ = false;
  throw ReadAgain();
}

// Which operand of the first product has the keys.
size_t Chain::side_of_keys(const IndexPool& pool, const std::vector<Index>& product) const {
  const size_t batches = scores_sides_[0].batch.size(), lhs = batches + scores_sides_[0].free.size();
  std::optional<size_t> found;
  for (size_t d = 0; d < product.size(); ++d) {
    const auto strides = strides_of(pool, product[d]);
    if ((*strides)[ChainAxes::kKey] == 0) continue;
    if (d < batches || found) refuse_attention("the keys are no columns of the first product");
    found = d < lhs ? 0 : 1;
  }
  return found.value_or(1);  // one key
}

std::vector<NodeId> Chain::nodes_above(ValueId operand, NodeId reader, bool in_pages) const {
  const ir::Graph& graph = problem_.graph;
  std::vector<NodeId> result;
  constexpr size_t kLongest = 64;  // canonical graphs have a few
  while (result.size() < kLongest) {
    const NodeId id = graph.value(operand).producer;
    const Op op = graph.node(id).op;
    if (!is_view(op) && !(in_pages && op == Op::kGather)) break;
    if (problem_.group != nullptr ? !is_in_group(id) : !problem_.may_view(id, reader)) break;
    in_pages = in_pages && op != Op::kGather;
    result.push_back(id);
    operand = graph.node(id).inputs[0];
    reader = id;
  }
  return result;
}

// Through as many layout changes as strides express.
Chain::Operand Chain::read_operand(ExprPool& pool, ValueId operand, NodeId reader, const std::vector<Index>& at,
                                   bool in_pages) {
  const ir::Graph& graph = problem_.graph;
  const std::vector<NodeId> chain = nodes_above(operand, reader, in_pages);
  for (size_t count = chain.size() + 1; count-- > 0;) {
    const ValueId top = count == 0 ? operand : graph.node(chain[count - 1]).inputs[0];
    const auto gather = std::find_if(chain.begin(), chain.begin() + static_cast<int64_t>(count),
                                     [&](NodeId id) { return graph.node(id).op == Op::kGather; });
    const bool is_gathered = gather != chain.begin() + static_cast<int64_t>(count);
    Inliner inliner(graph, pool);
    inliner.set_binding([&](ValueId value, const std::vector<Index>& index) -> std::optional<ExprId> {
      if (value != top && !(is_gathered && value == graph.node(*gather).inputs[1])) return std::nullopt;
      return pool.load(graph.dtype(value), value, pool.indices.linear(index, graph.shape(value)));
    });
    const Index index = pool[inliner.at(operand, at)].index;
    const auto reads_through = [&] {
      views.insert(views.end(), chain.begin(), chain.begin() + static_cast<int64_t>(count));
    };
    if (is_gathered) {
      if (auto paged = paged_index(pool, index, *axes_)) {
        reads_through();
        return {top, paged->offset, std::move(paged->strides), paged->page, std::move(paged->table)};
      }
    } else if (const auto strides = strides_of(pool.indices, index)) {
      reads_through();
      return {top, index.constant, *strides};
    }
    if (axes_->split_for(pool.indices, index)) throw ReadAgain();
    if (problem_.group != nullptr) break;
  }
  refuse_attention("its operands are no strided views");
}

}  // namespace heddle::schedule
