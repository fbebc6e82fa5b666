#include "passes/layout/sink_transposes.h"

#include <algorithm>

#include "passes/rewrite/emitter.h"
#include "passes/rewrite/refine.h"

namespace heddle::passes {
namespace {

using Result = std::optional<ValueId>;

Ints permuted(const Ints& values, const Ints& perm) {
  Ints result;
  for (int64_t p : perm) result.push_back(values[at(p)]);
  return result;
}
// The permutation of an operand that is a transpose, or null.
const Ints* perm_of(const Match& m, ValueId v) {
  return m.e.is(v, Op::kTranspose) ? &m.e.def(v).attrs.ints("perm") : nullptr;
}
ValueId under(const Match& m, ValueId v) {
  return m.e.def(v).inputs[0];
}
// Values that exist in any layout at no cost worth counting.
bool is_free(const Match& m, ValueId v) {
  return m.e.is(v, Op::kConstant) || m.e.is(v, Op::kBroadcast) || m.e.is(v, Op::kIota);
}

// ---- through ops on all elements ----

// op(T(x), T(y), free) = T(op(x, y, free'))
Result through_elementwise(const Match& m) {
  const Ints* perm = nullptr;
  for (ValueId v : m.in) {
    const Ints* p = perm_of(m, v);
    if (p == nullptr ? !is_free(m, v) : (perm != nullptr && *p != *perm)) return {};
    if (p != nullptr) perm = p;
  }
  if (perm == nullptr) return {};
  const Ints forth = *perm, back = inverse(forth);
  std::vector<ValueId> operands;
  for (ValueId v : m.in) operands.push_back(perm_of(m, v) != nullptr ? under(m, v) : m.e.transpose(v, back));
  return m.e.transpose(m.e.emit(m.op, operands, m.attrs), forth);
}

// Ops whose listed attributes have one entry for each dimension.
Result through_per_dim(const Match& m) {
  const Ints* perm = perm_of(m, m.in[0]);
  if (perm == nullptr) return {};
  const Ints forth = *perm, back = inverse(forth);
  Attrs attrs = m.attrs;
  for (const auto& [name, value] : m.attrs) {
    if (const auto* values = std::get_if<Ints>(&value)) attrs.set(name, permuted(*values, back));
  }
  std::vector<ValueId> operands = m.in;
  operands[0] = under(m, m.in[0]);
  return m.e.transpose(m.e.emit(m.op, operands, attrs), forth);
}

Result through_reverse(const Match& m) {
  const Ints* perm = perm_of(m, m.in[0]);
  if (perm == nullptr) return {};
  Ints dims = permuted(*perm, m.attrs.ints("dims"));
  std::sort(dims.begin(), dims.end());
  const Ints forth = *perm;
  return m.e.transpose(m.e.emit(Op::kReverse, {under(m, m.in[0])}, {{"dims", dims}}), forth);
}

Result through_concat(const Match& m) {
  const Ints* perm = perm_of(m, m.in[0]);
  if (perm == nullptr) return {};
  const Ints forth = *perm;
  std::vector<ValueId> parts;
  for (ValueId v : m.in) {
    const Ints* p = perm_of(m, v);
    if (p == nullptr || *p != forth) return {};
    parts.push_back(under(m, v));
  }
  return m.e.transpose(m.e.emit(Op::kConcat, parts, {{"dim", forth[at(m.attrs.integer("dim"))]}}), forth);
}

// A gather by a vector of indices keeps the rank.
Result through_gather(const Match& m) {
  const Ints* perm = perm_of(m, m.in[0]);
  if (perm == nullptr || m.e.shape(m.in[1]).size() != 1) return {};
  const Ints forth = *perm;
  const ValueId x = m.e.emit(Op::kGather, {under(m, m.in[0]), m.in[1]}, {{"dim", forth[at(m.attrs.integer("dim"))]}});
  return m.e.transpose(x, forth);
}

Result through_scan(const Match& m) {
  const Ints* perm = perm_of(m, m.in[0]);
  if (perm == nullptr) return {};
  const Ints forth = *perm;
  Attrs attrs = m.attrs;
  attrs.set("dim", forth[at(m.attrs.integer("dim"))]);
  return m.e.transpose(m.e.emit(Op::kScan, {under(m, m.in[0])}, attrs), forth);
}

// ---- through ops that change the rank ----

// The order that is left of a permutation without some of the operand's dimensions.
Ints perm_without(const Ints& perm, const Ints& removed) {
  Ints result;
  for (int64_t p : perm) {
    if (index_of(removed, p) >= 0) continue;
    result.push_back(p - std::count_if(removed.begin(), removed.end(), [&](int64_t r) { return r < p; }));
  }
  return result;
}
Result through_reduce(const Match& m) {
  const Ints* perm = perm_of(m, m.in[0]);
  if (perm == nullptr) return {};
  Ints dims = permuted(*perm, m.attrs.ints("dims"));
  std::sort(dims.begin(), dims.end());
  const Ints rest = perm_without(*perm, dims);
  Attrs attrs = m.attrs;
  attrs.set("dims", dims);
  return m.e.transpose(m.e.emit(Op::kReduce, {under(m, m.in[0])}, attrs), rest);
}
Result through_arg_reduce(const Match& m) {
  const Ints* perm = perm_of(m, m.in[0]);
  if (perm == nullptr) return {};
  const int64_t dim = (*perm)[at(m.attrs.integer("dim"))];
  const Ints rest = perm_without(*perm, {dim});
  Attrs attrs = m.attrs;
  attrs.set("dim", dim);
  return m.e.transpose(m.e.emit(Op::kArgReduce, {under(m, m.in[0])}, attrs), rest);
}

// Repeats along new dimensions (as nearest-neighbour resizing does), if the result is not much larger. A new dimension
// stays behind the one that it follows.
Result through_broadcast(const Match& m) {
  constexpr int64_t kMostGrowth = 8;
  const Ints* perm = perm_of(m, m.in[0]);
  const Shape& to = m.attrs.ints("shape");
  if (perm == nullptr || element_count(to) / kMostGrowth > m.e.count(m.in[0])) return {};
  const Ints& dims = m.attrs.ints("dims");
  Ints order, placed;  // dimensions of the result in the operand's order; where the operand's stand in it
  for (int64_t d = 0; d < (dims.empty() ? 0 : dims[0]); ++d) order.push_back(d);
  for (int64_t from : inverse(*perm)) {
    int64_t d = dims[at(from)];
    placed.push_back(static_cast<int64_t>(order.size()));
    do {
      order.push_back(d++);
    } while (d < static_cast<int64_t>(to.size()) && index_of(dims, d) < 0);
  }
  const ValueId wide = m.e.broadcast(under(m, m.in[0]), permuted(to, order), placed);
  return m.e.emit_plain(Op::kTranspose, {wide}, {{"perm", inverse(order)}});
}

// reshape(T(x)): dimensions are split before the transpose, and merged before it where they lie side by side there,
// too.
Result through_reshape(const Match& m) {
  const Ints* perm = perm_of(m, m.in[0]);
  const Shape to = m.attrs.ints("shape");
  if (perm == nullptr || element_count(to) == 0) return {};
  const ValueId x = under(m, m.in[0]);
  const auto fine = refine(m.e.shape(m.in[0]), to);
  if (!fine) return {};
  Ints order;  // fine dimensions in the order of x
  for (int64_t d : inverse(*perm)) {
    for (int64_t f : fine->from[at(d)]) order.push_back(f);
  }
  // Merge to the extents of `to` under the transpose; extents of 1 go last.
  Ints merged_order;
  bool side_by_side = true;
  for (size_t i = 0; i < order.size() && side_by_side;) {
    const auto owner = std::find_if(fine->to.begin(), fine->to.end(),
                                    [&](const Ints& group) { return index_of(group, order[i]) >= 0; });
    side_by_side = std::equal(owner->begin(), owner->end(), order.begin() + static_cast<int64_t>(i),
                              order.begin() + static_cast<int64_t>(std::min(order.size(), i + owner->size())));
    merged_order.push_back(owner - fine->to.begin());
    i += owner->size();
  }
  if (side_by_side) {
    for (size_t d = 0; d < to.size(); ++d) {
      if (fine->to[d].empty()) merged_order.push_back(static_cast<int64_t>(d));
    }
    return m.e.transpose(m.e.reshape(x, permuted(to, merged_order)), inverse(merged_order));
  }
  Shape without_ones = m.e.shape(m.in[0]);
  std::erase(without_ones, 1);
  if (without_ones == fine->extents) return {};
  const ValueId split = m.e.transpose(m.e.reshape(x, permuted(fine->extents, order)), inverse(order));
  return m.e.emit_plain(Op::kReshape, {split}, {{"shape", to}});
}

// ---- merges of dimensions behind a transpose ----

// A reshape that only merges dimensions of a transpose: the transpose, and for each dimension those that it merges.
struct FineMerge {
  ValueId inner;
  std::vector<Ints> groups;
};
std::optional<FineMerge> merge_of(const Match& m, ValueId v) {
  if (!m.e.is(v, Op::kReshape) || !m.e.is(under(m, v), Op::kTranspose) || m.e.count(v) == 0) return std::nullopt;
  const Shape& inner = m.e.shape(under(m, v));
  const auto fine = refine(inner, m.e.shape(v));
  if (!fine || fine->extents != inner) return std::nullopt;
  return FineMerge{under(m, v), fine->to};
}

// A broadcast, seen in the shape before the merge.
Result unmerged_broadcast(const Match& m, ValueId v, const FineMerge& merge) {
  const Shape& inner = m.e.shape(merge.inner);
  const Node& wide = m.e.def(v);
  const Shape& small = m.e.shape(wide.inputs[0]);
  const Ints& wide_dims = wide.attrs.ints("dims");
  Shape split;
  Ints dims;
  for (size_t i = 0; i < wide_dims.size(); ++i) {
    if (small[i] != m.e.shape(v)[at(wide_dims[i])]) return {};
    for (int64_t d : merge.groups[at(wide_dims[i])]) {
      split.push_back(inner[at(d)]);
      dims.push_back(d);
    }
  }
  return m.e.broadcast(m.e.reshape(wide.inputs[0], split), inner, dims);
}

Result merge_through_elementwise(const Match& m) {
  std::optional<FineMerge> merge;
  for (ValueId v : m.in) {
    if (!merge) merge = merge_of(m, v);
  }
  if (!merge) return {};
  std::vector<ValueId> operands;
  for (ValueId v : m.in) {
    if (const auto other = merge_of(m, v); other && m.e.shape(other->inner) == m.e.shape(merge->inner)) {
      operands.push_back(other->inner);
    } else if (m.e.is(v, Op::kBroadcast)) {
      const auto wide = unmerged_broadcast(m, v, *merge);
      if (!wide) return {};
      operands.push_back(*wide);
    } else {
      return {};
    }
  }
  const Shape to = m.e.shape(m.in[0]);
  return m.e.reshape(m.e.emit(m.op, operands, m.attrs), to);
}

Result merge_through_reduce(const Match& m) {
  const auto merge = merge_of(m, m.in[0]);
  if (!merge) return {};
  Ints dims;
  Shape to;
  for (size_t d = 0; d < merge->groups.size(); ++d) {
    if (index_of(m.attrs.ints("dims"), static_cast<int64_t>(d)) < 0) {
      to.push_back(m.e.shape(m.in[0])[d]);
    } else {
      dims.insert(dims.end(), merge->groups[d].begin(), merge->groups[d].end());
    }
  }
  Attrs attrs = m.attrs;
  attrs.set("dims", dims);
  return m.e.reshape(m.e.emit(Op::kReduce, {merge->inner}, attrs), to);
}

std::vector<Rule> make_sinking_rules() {
  std::vector<Rule> rules = {
      {Op::kSlice, "through_per_dim", through_per_dim},
      {Op::kPad, "through_per_dim", through_per_dim},
      {Op::kWindowReduce, "through_per_dim", through_per_dim},
      {Op::kReverse, "through_reverse", through_reverse},
      {Op::kConcat, "through_concat", through_concat},
      {Op::kGather, "through_gather", through_gather},
      {Op::kScan, "through_scan", through_scan},
      {Op::kReduce, "through_reduce", through_reduce},
      {Op::kArgReduce, "through_arg_reduce", through_arg_reduce},
      {Op::kBroadcast, "through_broadcast", through_broadcast},
      {Op::kReshape, "through_reshape", through_reshape},
      {Op::kReduce, "merge_through_reduce", merge_through_reduce},
  };
  for (const Op op : ir::elementwise_ops()) {
    rules.push_back({op, "through_elementwise", through_elementwise});
    rules.push_back({op, "merge_through_elementwise", merge_through_elementwise});
  }
  return rules;
}

}  // namespace

ir::Graph sink_transposes(const ir::Graph& graph, const PassContext&) {
  static const std::vector<Rule> rules = make_sinking_rules();
  static const RuleTable table{arithmetic_rules(),     layout_rules(),      indexing_rules(),
                               shared_operand_rules(), contraction_rules(), rules};
  return apply_rules(graph, table);
}

}  // namespace heddle::passes
