#include "schedule/region/exprs/targets.h"

#include <algorithm>
#include <set>
#include <utility>

namespace heddle::schedule {
namespace {

// Whether `found` holds for any of the values or of those that they are computed from, as far as `enters` says.
template <typename Found, typename Enters>
bool any_above(const ir::Graph& graph, std::vector<ir::ValueId> open, Found found, Enters enters) {
  std::set<ir::ValueId> seen;
  while (!open.empty()) {
    const ir::ValueId v = open.back();
    open.pop_back();
    if (!seen.insert(v).second) continue;
    if (found(v)) return true;
    if (!enters(v)) continue;
    const ir::Node& node = graph.producer(v);
    open.insert(open.end(), node.inputs.begin(), node.inputs.end());
  }
  return false;
}

// Whether a kernel would reduce something for the value.
bool reduces(const KernelContext& context, ir::ValueId value) {
  const auto op = [&](ir::ValueId v) { return context.graph.producer(v).op; };
  return any_above(
      context.graph, {value},
      [&](ir::ValueId v) { return !context.is_input(v) && (op(v) == Op::kReduce || op(v) == Op::kArgReduce); },
      [&](ir::ValueId v) { return !context.is_input(v) && Inliner::inlines(op(v)); });
}

// Whether any of the values is computed from `source`.
bool depends_on(const ir::Graph& graph, std::vector<ir::ValueId> values, ir::ValueId source) {
  return any_above(
      graph, std::move(values), [&](ir::ValueId v) { return v == source; }, [](ir::ValueId) { return true; });
}

// The root that computes an earlier value and stores its rows at their positions in `value`; nullopt if `value` is
// computed in its own order. Rows stay whole, so stores are as contiguous as before.
std::optional<RootTarget> moved_rows(const KernelContext& context, ir::ValueId value) {
  const auto is_loaded = [&](ir::ValueId v) { return context.is_input(v) || context.must_be_input(v); };
  RootTarget target{.value = value, .part = value};
  std::vector<const ir::Node*> passed;
  for (const ir::Node* node = &context.graph.producer(value);; node = &context.graph.producer(node->inputs[0])) {
    if (!moves_rows(context.graph, *node) || is_loaded(node->inputs[0])) break;
    passed.insert(passed.begin(), node);
    if (node->op != Op::kTranspose && target.moves.empty()) continue;
    target.part = node->inputs[0];
    target.moves = passed;
  }
  const bool found = !target.moves.empty() && ir::is_elementwise(context.graph.producer(target.part).op);
  return found ? std::optional(std::move(target)) : std::nullopt;
}

}  // namespace

bool moves_rows(const ir::Graph& graph, const ir::Node& node) {
  if (node.op != Op::kTranspose && node.op != Op::kReshape) return false;
  const Shape &from = graph.shape(node.inputs[0]), &to = graph.shape(node.outputs[0]);
  if (from.empty() || to.empty() || from.back() != to.back()) return false;
  return node.op == Op::kReshape || node.attrs.ints("perm").back() + 1 == static_cast<int64_t>(from.size());
}

bool scatters_one_row(const KernelContext& context, const ir::Node& node) {
  const ir::Graph& graph = context.graph;
  if (!context.scatters_rows || node.op != Op::kScatterElements || !ir::is_in_place(node) ||
      node.attrs.text("reduction") != "none")
    return false;
  const Shape &index = graph.shape(node.inputs[1]), &updates = graph.shape(node.inputs[2]);
  const auto dim = static_cast<size_t>(node.attrs.integer("dim"));
  const bool fits = dim + 1 < updates.size() && updates[dim] == 1 && index.back() == 1 && element_count(updates) > 0;
  // What reads old elements is made before: while rows are written nobody reads them. So is a reduced index: where a
  // row goes is computed at each store, outside the loops of reductions.
  return fits && !reduces(context, node.inputs[1]) &&
         !depends_on(graph, {node.inputs[1], node.inputs[2]}, node.inputs[0]);
}

Index scatter_to(Inliner& inliner, ExprPool& pool, const ir::Graph& graph, const ir::Node& scatter,
                 const std::vector<Index>& at, const std::function<ExprId(const std::vector<Index>&)>& load_old,
                 ExprId& value) {
  const Shape &shape = graph.shape(scatter.outputs[0]), &extents = graph.shape(scatter.inputs[1]);
  const auto dim = static_cast<size_t>(scatter.attrs.integer("dim"));
  std::vector<Index> index_at = at, there = at;
  for (size_t d = 0; d < at.size(); ++d) {
    if (extents[d] == 1) index_at[d] = IndexPool::constant(0);
  }
  const ExprId row = inliner.at(scatter.inputs[1], index_at);
  there[dim] = pool.indices.dynamic(row, shape[dim]);
  if (scatter.attrs.has("drop") && scatter.attrs.flag("drop")) {
    const auto is = [&](Op op, std::vector<ExprId> args) {
      return pool.add({.kind = Expr::Kind::kOp, .dtype = DType::kBool, .op = op, .args = std::move(args)});
    };
    const DType integer = pool[row].dtype;
    const ExprId inside = is(Op::kAnd, {is(Op::kGe, {row, pool.integer(integer, 0)}),
                                        is(Op::kLt, {row, pool.integer(integer, shape[dim])})});
    value = pool.add({.kind = Expr::Kind::kOp,
                      .dtype = pool[value].dtype,
                      .op = Op::kSelect,
                      .args = {inside, value, load_old(there)}});
  }
  return pool.indices.linear(there, shape);
}

std::vector<RootTarget> targets_of(const KernelContext& context, ir::ValueId value, bool joined) {
  constexpr size_t kMostParts = 8;
  const auto shape = [&](ir::ValueId v) { return context.graph.shape(v); };
  const ir::Node& last = context.graph.producer(value);
  if (scatters_one_row(context, last)) return {{.value = value, .part = last.inputs[2], .scatter = &last}};
  const bool casts =
      last.op == Op::kCast && !context.is_input(last.inputs[0]) && !context.must_be_input(last.inputs[0]);
  const ir::Node& node = casts ? context.graph.producer(last.inputs[0]) : last;
  const bool apart =
      context.parts_apart && node.op == Op::kConcat && node.inputs.size() <= kMostParts &&
      std::all_of(node.inputs.begin(), node.inputs.end(),
                  [&](ir::ValueId v) { return shape(v) == shape(node.inputs[0]) && element_count(shape(v)) > 0; }) &&
      reduces(context, value);
  if (!apart) {
    const auto moved = joined && context.moves_rows ? moved_rows(context, value) : std::nullopt;
    return {moved.value_or(RootTarget{.value = value, .part = value})};
  }
  std::vector<RootTarget> targets;
  const auto dim = static_cast<size_t>(node.attrs.integer("dim"));
  int64_t first = 0;
  for (ir::ValueId part : node.inputs) {
    targets.push_back({value, part, dim, first, casts ? &last : nullptr});
    first += shape(part)[dim];
  }
  return targets;
}

Index place_in(IndexPool& indices, const KernelContext& context, const RootTarget& target, const std::vector<Index>& at,
               const Index& flat) {
  const ValueMemory memory = context.memory_of(target.value);
  if (target.part == target.value && memory.place == nullptr) return flat;
  std::vector<Index> there = at;
  for (const ir::Node* move : target.moves) {
    if (move->op == Op::kReshape) {
      const Index position = indices.linear(there, context.graph.shape(move->inputs[0]));
      there = indices.delinear(position, context.graph.shape(move->outputs[0]));
      continue;
    }
    const std::vector<Index> from = there;
    const ir::Ints& perm = move->attrs.ints("perm");
    for (size_t d = 0; d < there.size(); ++d) there[d] = from[static_cast<size_t>(perm[d])];
  }
  if (target.moves.empty() && target.part != target.value)
    there[target.dim] = indices.offset(there[target.dim], target.first);
  return memory.position(indices, there);
}

}  // namespace heddle::schedule
