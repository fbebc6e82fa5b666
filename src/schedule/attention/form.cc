#include "schedule/attention/form.h"

#include <algorithm>
#include <set>

#include "base/check.h"

namespace heddle::schedule {
namespace {

// Makes the form of two products.
class FormMaker {
 public:
  FormMaker(const ChainProblem& problem, NodesBetween nodes, int64_t first_key)
      : graph_(problem.graph), nodes_(std::move(nodes)), first_key_(first_key), chain_(problem, nodes_, first_key) {
    form_.scores_product = problem.scores_product, form_.values_product = problem.values_product;
    form_.weights = chain_.weights();
    form_.views = chain_.views;
  }

  AttentionForm run() {
    place_axes();
    make_scores();
    collect_inside();
    return std::move(form_);
  }

 private:
  // The loops but one, outermost first: sequences, which have lines of a table of pages, then others. Dimensions that K
  // and V share are the innermost.
  std::vector<ChainAxes::Id> batch_without(std::optional<ChainAxes::Id> row) const {
    std::vector<ChainAxes::Id> loops = chain_.loops();
    std::erase_if(loops, [&](ChainAxes::Id axis) { return row == axis; });
    std::stable_partition(loops.begin(), loops.end(), [&](ChainAxes::Id axis) { return !is_shared(axis); });
    std::stable_partition(loops.begin(), loops.end(), [&](ChainAxes::Id axis) { return table_stride(axis) != 0; });
    return loops;
  }
  bool is_shared(ChainAxes::Id axis) const {
    return chain_.k.strides[axis] == 0 && chain_.v.strides[axis] == 0 && table_stride(axis) == 0;
  }
  int64_t table_stride(ChainAxes::Id axis) const { return chain_.k.table ? chain_.k.table->strides[axis] : 0; }

  // How many strides take Q from one batch to the next.
  int batch_strides(const std::vector<ChainAxes::Id>& batch) const {
    int count = 0;
    int64_t next = 0;  // what one stride fewer would need
    for (size_t i = batch.size(); i-- > 0;) {
      const int64_t stride = chain_.q.strides[batch[i]];
      if (count == 0 || stride != next) ++count;
      next = stride * chain_.axes().extent(batch[i]);
    }
    return count;
  }

  // Rows are what only Q has; of several the longest among those that leave the batch the fewest strides.
  void place_axes() {
    const ChainAxes& axes = chain_.axes();
    for (const ChainAxes::Id axis : chain_.loops()) {
      if (!is_shared(axis)) continue;
      const int now = row_ ? batch_strides(batch_without(row_)) : 0, then = batch_strides(batch_without(axis));
      const bool longer = row_ && axes.extent(axis) >= axes.extent(*row_);
      if (!row_ || then < now || (then == now && longer)) row_ = axis;
    }
    batch_ = batch_without(row_);
    for (const ChainAxes::Id axis : batch_) {
      form_.batch.push_back({axes.extent(axis), chain_.q.strides[axis], chain_.k.strides[axis], chain_.v.strides[axis],
                             table_stride(axis)});
    }
    if (const auto& table = chain_.k.table) {
      form_.pages = {table->value, table->keys,   table->pool,   table->offset,
                     table->entry, chain_.k.page, chain_.v.page, true};
    }
    form_.rows = row_ ? axes.extent(*row_) : 1, form_.keys = axes.extent(ChainAxes::kKey);
    form_.width = axes.extent(ChainAxes::kWidth), form_.depth = axes.extent(ChainAxes::kDepth);
    // A dimension of one element has no stride: memory is as contiguous along it as one likes.
    const auto operand = [&](const Chain::Operand& o, std::optional<ChainAxes::Id> line, ChainAxes::Id element) {
      const auto stride = [&](ChainAxes::Id axis) { return axes.extent(axis) == 1 ? 1 : o.strides[axis]; };
      return AttentionForm::Operand{o.value, o.offset, line ? stride(*line) : 1, stride(element)};
    };
    form_.q = operand(chain_.q, row_, ChainAxes::kDepth);
    form_.k = operand(chain_.k, ChainAxes::kKey, ChainAxes::kDepth);
    form_.v = operand(chain_.v, ChainAxes::kKey, ChainAxes::kWidth);
    form_.result_at = [chain = chain_, batch_axes = batch_, row_axis = row_](IndexPool& pool, const Index& batch,
                                                                             const Index& row, const Index& column) {
      std::vector<Index> at = axes_at(pool, chain.axes(), batch_axes, batch);
      if (row_axis) at[*row_axis] = row;
      at[ChainAxes::kWidth] = column;
      return chain.result_at(pool, at);
    };
  }

  static std::vector<Index> axes_at(IndexPool& pool, const ChainAxes& axes,
                                    const std::vector<ChainAxes::Id>& batch_axes, const Index& batch) {
    std::vector<Index> at(axes.count());
    Shape extents;
    for (const ChainAxes::Id axis : batch_axes) extents.push_back(axes.extent(axis));
    const std::vector<Index> batches = pool.delinear(batch, extents);
    for (size_t i = 0; i < batch_axes.size(); ++i) at[batch_axes[i]] = batches[i];
    return at;
  }

  void make_scores() {
    KeyExprs exprs(
        nodes_, [this](ValueId v) { return chain_.is_read(v); }, first_key_);
    IndexPool& indices = exprs.pool.indices;
    form_.batch_var = indices.new_var(form_.batches()), form_.row_var = indices.new_var(form_.rows);
    form_.outer_var = indices.new_var(1), form_.key_var = indices.new_var(form_.keys);
    const Index batch = indices.var(form_.batch_var), row = indices.var(form_.row_var);
    exprs.key = form_.key_var, exprs.keys = form_.keys, exprs.key_at = indices.var(form_.key_var);
    std::vector<Index> axes = axes_at(indices, chain_.axes(), batch_, batch);
    if (row_) axes[*row_] = row;
    axes[ChainAxes::kKey] = exprs.key_at;
    const ExprId weight = exprs.at(chain_.weights(), chain_.weights_at(indices, axes));
    KeyAlgebra algebra(exprs.pool, exprs.reductions, exprs.key);
    const auto form = algebra.weight(weight);
    if (!form) refuse_attention("what its second product reads is no softmax over the keys: " + algebra.why());
    const auto behind = look_behind(exprs, algebra, *form, form_.result_at(indices, batch, row, Index{}));
    const auto softmax = algebra.softmax(*form, behind);
    if (!softmax) refuse_attention("what its second product reads is no softmax over the keys: " + algebra.why());
    if (exprs.product_at.size() != 1) refuse_attention("a score is made of several products");
    form_.softmax = *softmax;
    const ValueId product = graph_.node(form_.scores_product).outputs[0];
    const ExprId placed =
        exprs.pool.local(DType::kF32, 0, indices.linear(*exprs.product_at.begin(), graph_.shape(product)));
    const ExprId plain = exprs.pool.local(DType::kF32, 0);
    form_.softmax.score = exprs.pool.substitute(form_.softmax.score, {}, {{placed, plain}});
    form_.scores = std::move(exprs.pool);
  }

  // What the result of the second product is multiplied by or divided by, as long as the weights are not divided by
  // their sum. `at`: the result's indices, wherever in its width.
  std::vector<std::pair<KeyWeight, int>> look_behind(KeyExprs& exprs, KeyAlgebra& algebra, const KeyWeight& weight,
                                                     std::vector<Index> at) {
    std::vector<std::pair<KeyWeight, int>> behind;
    const auto divides = [](const auto& sum) { return sum.second < 0; };
    if (std::any_of(weight.sums.begin(), weight.sums.end(), divides)) return behind;
    std::vector<NodeId> passed;
    ValueId value = graph_.node(form_.values_product).outputs[0];
    constexpr int kMostSteps = 16;
    for (int step = 0; step < kMostSteps; ++step) {
      const auto user = only_user(value);
      if (!user) break;
      const Node& node = graph_.node(*user);
      const ValueId next = node.outputs[0];
      passed.push_back(*user);
      IndexPool& indices = exprs.pool.indices;
      if (node.op == Op::kReshape) {
        at = indices.delinear(indices.linear(at, graph_.shape(value)), graph_.shape(next));
      } else if (node.op == Op::kTranspose) {
        std::vector<Index> to;
        for (const int64_t d : node.attrs.ints("perm")) to.push_back(at[static_cast<size_t>(d)]);
        at = std::move(to);
      } else if (node.op == Op::kMul || node.op == Op::kDiv) {
        const auto form = row_factor(exprs, algebra, node, value, at);
        if (!form) break;
        behind.emplace_back(*form, node.op == Op::kMul ? 1 : -1);
        form_.divisions.emplace_back(next, value);
        behind_.insert(behind_.end(), passed.begin(), passed.end());
        passed.clear();
        if (form->sums.size() == 1) break;  // the division
      } else if (node.op != Op::kCast || !is_float(graph_.dtype(next))) {
        break;
      }
      value = next;
    }
    return behind;
  }

  // What a product or quotient makes of `value`, where that is a value of the row that comes from the scores.
  std::optional<KeyWeight> row_factor(KeyExprs& exprs, KeyAlgebra& algebra, const Node& node, ValueId value,
                                      const std::vector<Index>& at) {
    const size_t other = node.inputs[0] == value ? 1 : 0;
    const ValueId factor = node.inputs[other];
    if (factor == value || (node.op == Op::kDiv && other == 0)) return std::nullopt;
    if (!nodes_.look_above(factor) || !nodes_.depends(graph_.value(factor).producer)) return std::nullopt;
    const ExprId e = exprs.at(factor, at);
    if (algebra.varies(e)) return std::nullopt;
    factors_.push_back(factor);
    return algebra.weight(e);
  }

  std::optional<NodeId> only_user(ValueId v) const {
    if (graph_.value(v).uses != 1) return std::nullopt;
    for (NodeId id = graph_.value(v).producer + 1; id < graph_.nodes().size(); ++id) {
      const auto& inputs = graph_.node(id).inputs;
      if (std::find(inputs.begin(), inputs.end(), v) != inputs.end()) return id;
    }
    return std::nullopt;
  }

  void collect_inside() {
    std::set<NodeId> inside(behind_.begin(), behind_.end());
    std::vector<ValueId> open = factors_;
    open.push_back(chain_.weights());
    while (!open.empty()) {
      const NodeId id = graph_.value(open.back()).producer;
      open.pop_back();
      if (!nodes_.depends(id) || !inside.insert(id).second) continue;
      for (const ValueId v : graph_.node(id).inputs) open.push_back(v);
    }
    form_.inside.assign(inside.begin(), inside.end());
  }

  const ir::Graph& graph_;
  NodesBetween nodes_;
  const int64_t first_key_;
  const Chain chain_;
  std::optional<ChainAxes::Id> row_;
  std::vector<ChainAxes::Id> batch_;
  std::vector<NodeId> behind_;
  std::vector<ValueId> factors_;  // of rows, behind the second product
  AttentionForm form_;
};

// Where the keys may begin in a longer dimension: what slices between the products leave out.
std::set<int64_t> first_keys(const ir::Graph& graph, const NodesBetween& nodes) {
  std::set<int64_t> result{0};
  for (const NodeId id : nodes.dependent()) {
    if (graph.node(id).op != Op::kSlice) continue;
    for (const int64_t start : graph.node(id).attrs.ints("starts")) result.insert(start);
  }
  return result;
}

// nullopt where no exponentials of products are summed before `product`. Throws the first reason against what may be an
// attention.
std::optional<AttentionForm> find_form(const ir::Graph& graph, NodeId product, const ir::Group* group,
                                       const MayView& may_view) {
  const Node& dot = graph.node(product);
  if (dot.op != Op::kDot || dot.inputs[0] == dot.inputs[1]) return std::nullopt;
  std::optional<Error> why;
  for (const size_t weights : {size_t{0}, size_t{1}}) {
    NodesBetween nodes(graph);
    if (!nodes.look_above(dot.inputs[weights])) continue;
    for (const NodeId candidate : nodes.products()) {
      nodes.set_product(candidate);
      if (!nodes.depends(graph.value(dot.inputs[weights]).producer) || !nodes.sums_exponentials()) continue;
      for (const int64_t first : first_keys(graph, nodes)) {
        try {
          return FormMaker({graph, group, may_view, candidate, product, weights}, nodes, first).run();
        } catch (const Error& error) {
          if (error.code() != ErrorCode::kUnsupportedOperator) throw;
          if (!why) why = error;
        }
      }
    }
  }
  if (why) throw Error(*why);
  return std::nullopt;
}

}  // namespace

int64_t AttentionForm::batches() const {
  int64_t count = 1;
  for (const Batch& b : batch) count *= b.extent;
  return count;
}

AttentionFinder::AttentionFinder(const ir::Graph& graph)
    : graph_(graph), has_exponentials_(NodesBetween::find_exponentials(graph)) {}

std::optional<ir::Attention> AttentionFinder::find(NodeId product, const MayView& may_view, std::string* reason) const {
  const Node& node = graph_.node(product);
  if (std::none_of(node.inputs.begin(), node.inputs.end(),
                   [this](ValueId v) { return has_exponentials_[graph_.value(v).producer]; })) {
    return std::nullopt;
  }
  try {
    auto form = find_form(graph_, product, nullptr, may_view);
    if (!form) return std::nullopt;
    const ValueId result = form->divisions.empty() ? node.outputs[0] : form->divisions.back().first;
    return ir::Attention{form->scores_product, product, std::move(form->inside), std::move(form->views), result};
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupportedOperator) throw;
    *reason = error.why();
    return std::nullopt;
  }
}

AttentionForm attention_form(const ir::Graph& graph, const ir::Group& group) {
  auto form = find_form(graph, group.anchor, &group, {});
  if (!form) refuse_attention("the group is no product, softmax and product");
  return std::move(*form);
}

}  // namespace heddle::schedule
