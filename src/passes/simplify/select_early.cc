#include "passes/simplify/select_early.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "ir/rewrite.h"
#include "passes/names.h"
#include "passes/rewrite/dot_side.h"
#include "passes/rewrite/refine.h"
#include "passes/rewrite/view.h"

namespace heddle::passes {
namespace {

using ir::Graph;

constexpr int64_t kNone = -1;

// The dimensions of a value that a selection concerns.
struct Axes {
  NodeId selection = 0;   // the slice, gather or gather_nd
  int64_t row = 0;        // the dimension from which it selects
  int64_t batch = kNone;  // the dimension that has an index of its own for each element; gather_nd only
  bool operator==(const Axes&) const = default;
};
using OperandAxes = std::vector<std::optional<Axes>>;  // nullopt: the operand is the same for all rows

size_t at(int64_t dim) {
  return static_cast<size_t>(dim);
}

int64_t position_of(const Ints& list, int64_t value) {
  const auto found = std::find(list.begin(), list.end(), value);
  return found == list.end() ? kNone : found - list.begin();
}

// The axes from which a node selects; nullopt if it does not select along one dimension.
std::optional<Axes> selects_along(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op == Op::kGather && graph.shape(node.inputs[1]).size() == 1)
    return Axes{id, node.attrs.integer("dim"), kNone};
  if (node.op == Op::kGatherNd && node.attrs.integer("batch_dims") == 1 && graph.shape(node.inputs[1]).size() == 2 &&
      graph.shape(node.inputs[1])[1] == 1) {
    return Axes{id, 1, 0};
  }
  if (node.op != Op::kSlice) return std::nullopt;
  const Shape &from = graph.shape(node.inputs[0]), &to = graph.shape(node.outputs[0]);
  std::optional<Axes> found;
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] == to[d]) continue;
    if (found) return std::nullopt;
    found = Axes{id, static_cast<int64_t>(d), kNone};
  }
  return found;
}

// How many rows a selection keeps.
int64_t selected_rows(const Graph& graph, const Axes& axes) {
  const Node& node = graph.node(axes.selection);
  return node.op == Op::kGatherNd ? 1 : graph.shape(node.outputs[0])[at(axes.row)];
}

// The axes of a selection that keeps at most half of the rows.
std::optional<Axes> selection_axes(const Graph& graph, NodeId id) {
  const auto axes = selects_along(graph, id);
  if (!axes || 2 * selected_rows(graph, *axes) > graph.shape(graph.node(id).inputs[0])[at(axes->row)]) return {};
  return axes;
}

// How axes of a node's result are axes of its operands.
class AxesOfOperands {
 public:
  AxesOfOperands(const Graph& graph, const Node& node, const Axes& axes) : graph_(graph), node_(node), axes_(axes) {}

  // Returns nullopt if the selection cannot pass through the node.
  std::optional<OperandAxes> find() const {
    const auto found = by_op();
    // gather_nd has its batches in front.
    const auto fits = [&](const std::optional<Axes>& axes) {
      return !axes || axes->batch == kNone || (axes->batch == 0 && axes->row == 1);
    };
    if (!found || !std::all_of(found->begin(), found->end(), fits)) return std::nullopt;
    return found;
  }

 private:
  std::optional<OperandAxes> by_op() const {
    if (ir::is_elementwise(node_.op)) return OperandAxes(node_.inputs.size(), axes_);
    switch (node_.op) {
      case Op::kBroadcast:
        return broadcast();
      case Op::kReshape:
        return reshape();
      case Op::kTranspose:
        return mapped(node_.attrs.ints("perm"));
      case Op::kReduce:
        return reduce();
      case Op::kDot:
        return dot();
      default:
        return std::nullopt;
    }
  }

  // `map`: for each dimension of the result, the dimension of the only operand, or kNone.
  std::optional<OperandAxes> mapped(const Ints& map) const {
    const int64_t row = map[at(axes_.row)], batch = axes_.batch == kNone ? kNone : map[at(axes_.batch)];
    if (row == kNone) return OperandAxes{std::nullopt};
    if (axes_.batch != kNone && batch == kNone) return std::nullopt;
    return OperandAxes{Axes{axes_.selection, row, batch}};
  }

  std::optional<OperandAxes> broadcast() const {
    const Shape &from = graph_.shape(node_.inputs[0]), &to = graph_.shape(node_.outputs[0]);
    const Ints& dims = node_.attrs.ints("dims");
    Ints map(to.size(), kNone);
    for (size_t i = 0; i < dims.size(); ++i) {
      if (from[i] == to[at(dims[i])]) map[at(dims[i])] = static_cast<int64_t>(i);
    }
    return mapped(map);
  }

  std::optional<OperandAxes> reshape() const {
    const auto split = refine(graph_.shape(node_.inputs[0]), graph_.shape(node_.outputs[0]));
    if (!split) return std::nullopt;
    Ints map(split->to.size(), kNone);
    for (size_t d = 0; d < split->to.size(); ++d) {
      const auto same = std::find(split->from.begin(), split->from.end(), split->to[d]);
      if (!split->to[d].empty() && same != split->from.end()) map[d] = same - split->from.begin();
    }
    if (map[at(axes_.row)] == kNone) return std::nullopt;  // it lies across dimensions
    return mapped(map);
  }

  std::optional<OperandAxes> reduce() const {
    const Ints& reduced = node_.attrs.ints("dims");
    Ints map;
    for (int64_t d = 0; d < static_cast<int64_t>(graph_.shape(node_.inputs[0]).size()); ++d) {
      if (position_of(reduced, d) == kNone) map.push_back(d);
    }
    return mapped(map);
  }

  std::optional<OperandAxes> dot() const {
    OperandAxes result(2);
    auto first_free = static_cast<int64_t>(node_.attrs.ints("lhs_batch").size());
    for (const size_t i : {0, 1}) {
      const DotSide side(graph_, node_, i);
      const auto end = first_free + static_cast<int64_t>(side.free.size());
      const auto dim = [&](int64_t d) {
        if (d == kNone) return kNone;
        if (d < static_cast<int64_t>(side.batch.size())) return side.batch[at(d)];
        return d >= first_free && d < end ? side.free[at(d - first_free)] : kNone;
      };
      if (dim(axes_.row) != kNone) {
        if (is_prepared(node_.inputs[i])) return std::nullopt;
        if (axes_.batch != kNone && dim(axes_.batch) == kNone) return std::nullopt;
        result[i] = Axes{axes_.selection, dim(axes_.row), dim(axes_.batch)};
      }
      first_free = end;
    }
    return result;
  }

  // True for weights that products read packed, or in an order made ahead of the run: their selected rows would be
  // copied in each run.
  bool is_prepared(ValueId v) const {
    const Node& selection = graph_.node(axes_.selection);
    const bool at_run_time = selection.inputs.size() > 1 && graph_.constant_of(selection.inputs[1]) == nullptr;
    return is_packed_weights(graph_, v) || (at_run_time && is_constant_view(graph_, v));
  }

  const Graph& graph_;
  const Node& node_;
  const Axes axes_;
};

// The nodes through which selections move. Users come before operands, so that it is known of each value whether all
// its readers are such nodes, with the same selection of the same axes.
class EarlySelections {
 public:
  explicit EarlySelections(const Graph& graph)
      : graph_(graph), axes_(graph.value_count()), readers_(graph.value_count()) {
    std::vector<uint32_t> uses(graph.value_count());
    const std::vector<bool> live = ir::live_nodes(graph);
    for (NodeId id = 0; id < graph.nodes().size(); ++id) {
      if (!live[id]) continue;
      for (const ValueId v : graph.node(id).inputs) ++uses[v];
    }
    for (const Graph::Port& port : graph.outputs()) ++uses[port.value];
    std::set<NodeId> pay;  // selections that spare a product
    for (NodeId id = static_cast<NodeId>(graph.nodes().size()); id-- > 0;) {
      const Node& node = graph.node(id);
      if (!live[id] || node.outputs.size() != 1) continue;
      if (const auto selects = selection_axes(graph, id)) {
        read(node.inputs[0], *selects);
        continue;
      }
      const ValueId v = node.outputs[0];
      if (!axes_[v] || readers_[v] != uses[v] || is_before_index(id, *axes_[v])) continue;
      auto operands = AxesOfOperands(graph, node, *axes_[v]).find();
      if (!operands) continue;
      for (size_t i = 0; i < operands->size(); ++i) {
        if ((*operands)[i]) read(node.inputs[i], *(*operands)[i]);
      }
      if (node.op == Op::kDot) pay.insert(axes_[v]->selection);
      operands_.emplace(id, std::move(*operands));
    }
    std::erase_if(operands_, [&](const auto& entry) {
      return !pay.contains(axes_[graph.node(entry.first).outputs[0]]->selection);
    });
  }

  bool empty() const { return operands_.empty(); }
  // Returns null if the node computes all rows.
  const OperandAxes* operands(NodeId id) const {
    const auto found = operands_.find(id);
    return found == operands_.end() ? nullptr : &found->second;
  }
  const Axes& axes(const Node& node) const { return *axes_[node.outputs[0]]; }

 private:
  void read(ValueId v, const Axes& axes) {
    if (!axes_[v]) axes_[v] = axes;
    if (*axes_[v] == axes) ++readers_[v];
  }

  bool is_before_index(NodeId id, const Axes& axes) const {
    const Node& selection = graph_.node(axes.selection);
    return selection.inputs.size() > 1 && graph_.value(selection.inputs[1]).producer > id;
  }

  const Graph& graph_;
  std::vector<std::optional<Axes>> axes_;  // by value: the selection that its readers make
  std::vector<uint32_t> readers_;          // by value: how many of its readers make it
  std::map<NodeId, OperandAxes> operands_;
};

class Emission {
 public:
  Emission(const Graph& graph, const EarlySelections& early) : graph_(graph), early_(early) {}

  std::optional<std::vector<ValueId>> visit(ir::Rewriter& r, const Node& node) {
    const NodeId id = graph_.value(node.outputs[0]).producer;
    if (const OperandAxes* operands = early_.operands(id)) {
      std::vector<ValueId> inputs;
      for (size_t i = 0; i < operands->size(); ++i) {
        const ValueId v = node.inputs[i];
        inputs.push_back((*operands)[i] ? selected(r, v, *(*operands)[i]) : r(v));
      }
      Attrs attrs = node.attrs;
      if (attrs.has("shape")) {
        Shape shape = attrs.ints("shape");
        const Axes& axes = early_.axes(node);
        shape[at(axes.row)] = rows_of(axes);
        attrs.set("shape", shape);
      }
      made_[key(node.outputs[0], early_.axes(node))] = r.emit(node.op, std::move(inputs), std::move(attrs));
      return std::nullopt;  // the node with all rows is dead
    }
    const auto selects = selection_axes(graph_, id);
    const auto found = selects ? made_.find(key(node.inputs[0], *selects)) : made_.end();
    if (found == made_.end()) return std::nullopt;
    const ValueId rows = found->second;
    const Shape& shape = graph_.shape(node.outputs[0]);
    if (r.target().shape(rows) == shape) return std::vector{rows};
    return std::vector{r.emit(Op::kReshape, {rows}, {{"shape", shape}})};
  }

 private:
  using Key = std::tuple<ValueId, NodeId, int64_t>;

  static Key key(ValueId v, const Axes& axes) { return {v, axes.selection, axes.row}; }

  int64_t rows_of(const Axes& axes) const { return selected_rows(graph_, *selection_axes(graph_, axes.selection)); }

  // The selected rows of a value, with its rank.
  ValueId selected(ir::Rewriter& r, ValueId v, const Axes& axes) {
    if (const auto found = made_.find(key(v, axes)); found != made_.end()) return found->second;
    const Node& selection = graph_.node(axes.selection);
    Attrs attrs = selection.attrs;
    Shape shape = graph_.shape(v);
    ValueId rows = 0;
    if (selection.op == Op::kSlice) {
      const size_t from = at(selection_axes(graph_, axes.selection)->row), row = at(axes.row);
      Ints starts(shape.size(), 0), limits = shape, strides(shape.size(), 1);
      starts[row] = attrs.ints("starts")[from], limits[row] = attrs.ints("limits")[from];
      strides[row] = attrs.ints("strides")[from];
      rows = r.emit(Op::kSlice, {r(v)}, {{"starts", starts}, {"limits", limits}, {"strides", strides}});
    } else {
      if (selection.op == Op::kGather) attrs.set("dim", axes.row);
      rows = r.emit(selection.op, {r(v), r(selection.inputs[1])}, std::move(attrs));
    }
    shape[at(axes.row)] = rows_of(axes);
    if (r.target().shape(rows) != shape) rows = r.emit(Op::kReshape, {rows}, {{"shape", shape}});
    return made_[key(v, axes)] = rows;
  }

  const Graph& graph_;
  const EarlySelections& early_;
  std::map<Key, ValueId> made_;  // selected rows of values of the source, in the target
};

}  // namespace

Graph select_early(const Graph& graph, const PassContext&) {
  const EarlySelections early(graph);
  if (early.empty()) return graph;
  Emission emission(graph, early);
  return ir::Rewriter(graph).run([&](ir::Rewriter& r, const Node& node) { return emission.visit(r, node); });
}

}  // namespace heddle::passes
