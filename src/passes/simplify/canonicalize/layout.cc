#include <algorithm>

#include "ir/reference/scalar.h"
#include "passes/layout/split_concats.h"
#include "passes/rewrite/emitter.h"

namespace heddle::passes {
namespace {

using Result = std::optional<ValueId>;

ValueId first(const Match& m) {
  return m.e.def(m.in[0]).inputs[0];
}
Shape without_ones(const Shape& shape) {
  Shape result;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(result), [](int64_t n) { return n != 1; });
  return result;
}

// ---- broadcast ----

Result broadcast_identity(const Match& m) {
  if (m.attrs.ints("shape") != m.e.shape(m.in[0])) return {};
  return m.in[0];
}
// Dimensions of extent 1 say nothing about where elements go: the operand loses them.
Result broadcast_drop_ones(const Match& m) {
  const Shape& from = m.e.shape(m.in[0]);
  if (index_of(from, 1) < 0) return {};
  const Ints& dims = m.attrs.ints("dims");
  Ints kept;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] != 1) kept.push_back(dims[i]);
  }
  return m.e.broadcast(m.e.reshape(m.in[0], without_ones(from)), m.attrs.ints("shape"), kept);
}
// Nothing is repeated: only dimensions of extent 1 are new.
Result broadcast_is_reshape(const Match& m) {
  const Shape& to = m.attrs.ints("shape");
  if (element_count(to) != m.e.count(m.in[0]) || element_count(to) == 0) return {};
  return m.e.reshape(m.in[0], to);
}
Result broadcast_twice(const Match& m) {
  if (!m.e.is(m.in[0], Op::kBroadcast)) return {};
  const Node& inner = m.e.def(m.in[0]);
  Ints dims;
  for (int64_t d : inner.attrs.ints("dims")) dims.push_back(m.attrs.ints("dims")[at(d)]);
  return m.e.broadcast(inner.inputs[0], m.attrs.ints("shape"), dims);
}

// ---- reshape ----

Result reshape_identity(const Match& m) {
  if (m.attrs.ints("shape") != m.e.shape(m.in[0])) return {};
  return m.in[0];
}
Result reshape_twice(const Match& m) {
  if (!m.e.is(m.in[0], Op::kReshape)) return {};
  return m.e.reshape(first(m), m.attrs.ints("shape"));
}
// The dimensions of `to` that hold the same extents as those of `from`, in order, when both differ in ones only.
std::optional<Ints> map_without_ones(const Shape& from, const Shape& to) {
  if (without_ones(from) != without_ones(to)) return std::nullopt;
  Ints map(from.size(), -1);
  size_t j = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == 1) continue;
    while (to[j] == 1) ++j;
    map[i] = static_cast<int64_t>(j++);
  }
  return map;
}
// A reshape behind a broadcast of a scalar, or one that adds or drops ones, is part of the broadcast.
Result reshape_broadcast(const Match& m) {
  if (!m.e.is(m.in[0], Op::kBroadcast)) return {};
  const Node& wide = m.e.def(m.in[0]);
  const Shape& to = m.attrs.ints("shape");
  if (m.e.shape(wide.inputs[0]).empty()) return m.e.broadcast(wide.inputs[0], to, {});
  const auto map = map_without_ones(m.e.shape(m.in[0]), to);
  if (!map) return {};
  Ints dims;
  for (int64_t d : wide.attrs.ints("dims")) dims.push_back((*map)[at(d)]);
  if (index_of(dims, -1) >= 0) return {};
  return m.e.broadcast(wide.inputs[0], to, dims);
}

// ---- transpose ----

Result transpose_identity(const Match& m) {
  const Ints& perm = m.attrs.ints("perm");
  if (perm != counting(perm.size())) return {};
  return m.in[0];
}
Result transpose_twice(const Match& m) {
  if (!m.e.is(m.in[0], Op::kTranspose)) return {};
  const Node& inner = m.e.def(m.in[0]);
  Ints perm;
  for (int64_t p : m.attrs.ints("perm")) perm.push_back(inner.attrs.ints("perm")[at(p)]);
  return m.e.transpose(inner.inputs[0], perm);
}
// Only dimensions of extent 1 move.
Result transpose_is_reshape(const Match& m) {
  const Shape& from = m.e.shape(m.in[0]);
  Ints moved;
  Shape to;
  for (int64_t p : m.attrs.ints("perm")) {
    if (from[at(p)] != 1) moved.push_back(p);
    to.push_back(from[at(p)]);
  }
  if (!std::is_sorted(moved.begin(), moved.end()) && m.e.count(m.in[0]) != 0) return {};
  return m.e.reshape(m.in[0], to);
}
Result transpose_broadcast(const Match& m) {
  if (!m.e.is(m.in[0], Op::kBroadcast)) return {};
  const Node& wide = m.e.def(m.in[0]);
  const Ints &perm = m.attrs.ints("perm"), &dims = wide.attrs.ints("dims");
  Shape to;
  Ints inner, placed;
  for (size_t i = 0; i < perm.size(); ++i) {
    to.push_back(m.e.shape(m.in[0])[at(perm[i])]);
    if (const int64_t from = index_of(dims, perm[i]); from >= 0) {
      inner.push_back(from);
      placed.push_back(static_cast<int64_t>(i));
    }
  }
  return m.e.broadcast(m.e.transpose(wide.inputs[0], inner), to, placed);
}

// ---- slice, reverse, concat, pad ----

Result slice_whole(const Match& m) {
  if (m.attrs.ints("limits") != m.e.shape(m.in[0])) return {};
  for (int64_t s : m.attrs.ints("starts")) {
    if (s != 0) return {};
  }
  const Ints &shape = m.e.shape(m.in[0]), &strides = m.attrs.ints("strides");
  for (size_t i = 0; i < shape.size(); ++i) {
    if (strides[i] != 1 && shape[i] > 1) return {};
  }
  return m.in[0];
}
Result slice_twice(const Match& m) {
  if (!m.e.is(m.in[0], Op::kSlice)) return {};
  const Node& inner = m.e.def(m.in[0]);
  const Ints &s0 = inner.attrs.ints("starts"), &t0 = inner.attrs.ints("strides"), &l0 = inner.attrs.ints("limits");
  const Ints &s1 = m.attrs.ints("starts"), &t1 = m.attrs.ints("strides"), &l1 = m.attrs.ints("limits");
  Ints starts, limits, strides;
  for (size_t d = 0; d < s0.size(); ++d) {
    int64_t step = 0, first = 0, end = 0;
    if (__builtin_mul_overflow(t0[d], t1[d], &step) || __builtin_mul_overflow(s1[d], t0[d], &first) ||
        __builtin_mul_overflow(l1[d], t0[d], &end) || __builtin_add_overflow(end, s0[d], &end)) {
      return {};
    }
    starts.push_back(s0[d] + first);
    limits.push_back(std::min(l0[d], end));
    if (limits[d] < starts[d]) starts[d] = limits[d];
    strides.push_back(step);
  }
  return m.e.slice(first(m), starts, limits, strides);
}
Result slice_broadcast(const Match& m) {
  if (!m.e.is(m.in[0], Op::kBroadcast)) return {};
  const Node& wide = m.e.def(m.in[0]);
  const Ints &starts = m.attrs.ints("starts"), &limits = m.attrs.ints("limits"), &steps = m.attrs.ints("strides");
  const Shape& from = m.e.shape(wide.inputs[0]);
  Shape to;
  for (size_t d = 0; d < starts.size(); ++d) {
    to.push_back(limits[d] == starts[d] ? 0 : (limits[d] - starts[d] - 1) / steps[d] + 1);
  }
  Ints inner_starts, inner_limits, inner_steps;
  const Ints dims = wide.attrs.ints("dims");
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool one = from[i] == 1;
    inner_starts.push_back(one ? 0 : starts[at(dims[i])]);
    inner_limits.push_back(one ? 1 : limits[at(dims[i])]);
    inner_steps.push_back(one ? 1 : steps[at(dims[i])]);
  }
  return m.e.broadcast(m.e.slice(wide.inputs[0], inner_starts, inner_limits, inner_steps), to, dims);
}
// A slice that lies within one operand of a concat.
Result slice_concat(const Match& m) {
  if (!m.e.is(m.in[0], Op::kConcat)) return {};
  const Node& joined = m.e.def(m.in[0]);
  const size_t dim = at(joined.attrs.integer("dim"));
  Ints starts = m.attrs.ints("starts"), limits = m.attrs.ints("limits");
  int64_t begin = 0;
  for (ValueId part : joined.inputs) {
    const int64_t end = begin + m.e.shape(part)[dim];
    if (begin <= starts[dim] && limits[dim] <= end && starts[dim] < limits[dim]) {
      starts[dim] -= begin;
      limits[dim] -= begin;
      return m.e.slice(part, starts, limits, m.attrs.ints("strides"));
    }
    begin = end;
  }
  return {};
}
Result reverse_ones(const Match& m) {
  Ints kept;
  for (int64_t d : m.attrs.ints("dims")) {
    if (m.e.shape(m.in[0])[at(d)] > 1) kept.push_back(d);
  }
  if (kept.empty()) return m.in[0];
  if (kept.size() == m.attrs.ints("dims").size()) return {};
  return m.e.emit(Op::kReverse, {m.in[0]}, {{"dims", kept}});
}
Result reverse_twice(const Match& m) {
  if (!m.e.is(m.in[0], Op::kReverse)) return {};
  if (m.e.def(m.in[0]).attrs.ints("dims") != m.attrs.ints("dims")) return {};
  return first(m);
}
Result concat_one(const Match& m) {
  if (m.in.size() != 1) return {};
  return m.in[0];
}
Result concat_empty(const Match& m) {
  const size_t dim = at(m.attrs.integer("dim"));
  std::vector<ValueId> kept;
  for (ValueId v : m.in) {
    if (m.e.shape(v)[dim] != 0) kept.push_back(v);
  }
  if (kept.empty() || kept.size() == m.in.size()) return {};
  return m.e.emit(Op::kConcat, kept, m.attrs);
}
Result concat_nested(const Match& m) {
  std::vector<ValueId> parts;
  for (ValueId v : m.in) {
    const Node& node = m.e.def(v);
    if (node.op == Op::kConcat && node.attrs.integer("dim") == m.attrs.integer("dim")) {
      parts.insert(parts.end(), node.inputs.begin(), node.inputs.end());
    } else {
      parts.push_back(v);
    }
  }
  // What is concatenated with itself again and again would have any number of parts.
  if (parts.size() == m.in.size() || parts.size() > kMostConcatParts) return {};
  return m.e.emit(Op::kConcat, parts, m.attrs);
}
// Whether parts can be made in place depends on kernels that are not known yet.
Result concat_in_place(const Match& m) {
  if (!m.attrs.has("in_place")) return {};
  return m.e.emit(Op::kConcat, m.in, {{"dim", m.attrs.integer("dim")}});
}
Result pad_nothing(const Match& m) {
  const auto zero = [](int64_t n) { return n == 0; };
  const Ints &low = m.attrs.ints("low"), &high = m.attrs.ints("high");
  if (!std::all_of(low.begin(), low.end(), zero) || !std::all_of(high.begin(), high.end(), zero)) return {};
  return m.in[0];
}
Result pad_twice(const Match& m) {
  if (!m.e.is(m.in[0], Op::kPad) || m.attrs.text("mode") != "constant") return {};
  const Node& inner = m.e.def(m.in[0]);
  const auto a = m.e.splat(inner.inputs[1]), b = m.e.splat(m.in[1]);
  const bool same = inner.inputs[1] == m.in[1] || (a && b && *a == *b);
  if (inner.attrs.text("mode") != "constant" || !same) return {};
  Ints low = m.attrs.ints("low"), high = m.attrs.ints("high");
  for (size_t d = 0; d < low.size(); ++d) {
    low[d] += inner.attrs.ints("low")[d];
    high[d] += inner.attrs.ints("high")[d];
  }
  return m.e.emit(Op::kPad, {inner.inputs[0], m.in[1]}, {{"low", low}, {"high", high}, {"mode", "constant"}});
}

// ---- sums of values that are zero outside a range ----

// The range of one dimension outside which a tensor is zero. `part` covers the range, or the whole dimension.
struct Filled {
  size_t dim;
  int64_t begin, end;
  ValueId part;
};

// The range in which a mask is true. The mask varies along one dimension only.
struct TrueRange {
  size_t dim;
  int64_t begin, end;
};
std::optional<TrueRange> true_range(const Match& m, ValueId mask) {
  constexpr int64_t kMost = 4096;
  if (!m.e.is(mask, Op::kBroadcast)) return std::nullopt;
  const Node& wide = m.e.def(mask);
  const ValueId from = wide.inputs[0];
  if (!m.e.is(from, Op::kConstant) || m.e.shape(from).size() != 1 || m.e.count(from) > kMost) return std::nullopt;
  const Tensor& value = m.e.def(from).attrs.tensor("value");
  const auto is_true = [&](int64_t i) { return ir::integer_at(value, i) != 0; };
  int64_t begin = 0, end = value.size();
  while (begin < end && !is_true(begin)) ++begin;
  while (end > begin && !is_true(end - 1)) --end;
  for (int64_t i = begin; i < end; ++i) {
    if (!is_true(i)) return std::nullopt;
  }
  if (begin == end) return std::nullopt;
  return TrueRange{at(wide.attrs.ints("dims")[0]), begin, end};
}

// Appends the ranges in which `v` may be nonzero. Returns false if they are not ranges of one dimension.
bool add_filled(const Match& m, ValueId v, std::vector<Filled>& to) {
  const Node node = m.e.def(v);
  if (node.op == Op::kPad) {
    if (node.attrs.text("mode") != "constant" || m.e.splat(node.inputs[1]) != 0) return false;
    const Ints &low = node.attrs.ints("low"), &high = node.attrs.ints("high");
    std::optional<size_t> dim;
    for (size_t d = 0; d < low.size(); ++d) {
      if (low[d] == 0 && high[d] == 0) continue;
      if (dim || low[d] < 0 || high[d] < 0) return false;
      dim = d;
    }
    if (!dim) return false;
    to.push_back({*dim, low[*dim], low[*dim] + m.e.shape(node.inputs[0])[*dim], node.inputs[0]});
    return true;
  }
  if (node.op == Op::kSelect) {
    const auto range = true_range(m, node.inputs[0]);
    if (!range || m.e.splat(node.inputs[2]) != 0) return false;
    to.push_back({range->dim, range->begin, range->end, node.inputs[1]});
    return true;
  }
  if (node.op != Op::kConcat) return false;
  const size_t dim = at(node.attrs.integer("dim"));
  int64_t begin = 0;
  const size_t before = to.size();
  for (ValueId part : node.inputs) {
    const int64_t end = begin + m.e.shape(part)[dim];
    if (m.e.splat(part) != 0) to.push_back({dim, begin, end, part});
    begin = end;
  }
  return to.size() - before < node.inputs.size();
}

// The gradient of a tensor adds the gradients of its slices. If the slices do not overlap, it is a concatenation.
Result add_parts(const Match& m) {
  std::vector<Filled> filled;
  for (ValueId v : m.in) {
    if (!add_filled(m, v, filled)) return {};
  }
  std::sort(filled.begin(), filled.end(), [](const Filled& a, const Filled& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < filled.size(); ++i) {
    if (filled[i].dim != filled[0].dim || filled[i].begin < filled[i - 1].end) return {};
  }
  if (filled.empty() || 2 * filled.size() + 1 > kMostConcatParts) return {};
  const size_t dim = filled[0].dim;
  const Shape shape = m.e.shape(m.in[0]);
  std::vector<ValueId> parts;
  int64_t done = 0;
  const auto zeros_to = [&](int64_t end) {
    Shape gap = shape;
    gap[dim] = end - done;
    if (end > done) parts.push_back(m.e.broadcast(m.e.constant(ir::splat(m.e.dtype(m.in[0]), {}, 0)), gap, {}));
  };
  for (const Filled& f : filled) {
    zeros_to(f.begin);
    Ints starts(shape.size(), 0), limits = shape;
    const bool whole = m.e.shape(f.part)[dim] == shape[dim];
    starts[dim] = whole ? f.begin : 0;
    limits[dim] = whole ? f.end : f.end - f.begin;
    parts.push_back(m.e.slice(f.part, starts, limits, Ints(shape.size(), 1)));
    done = f.end;
  }
  zeros_to(shape[dim]);
  return m.e.emit(Op::kConcat, parts, {{"dim", static_cast<int64_t>(dim)}});
}

}  // namespace

std::span<const Rule> layout_rules() {
  static constexpr Rule kRules[] = {
      {Op::kBroadcast, "broadcast_identity", broadcast_identity},
      {Op::kBroadcast, "broadcast_drop_ones", broadcast_drop_ones},
      {Op::kBroadcast, "broadcast_is_reshape", broadcast_is_reshape},
      {Op::kBroadcast, "broadcast_twice", broadcast_twice},
      {Op::kReshape, "reshape_identity", reshape_identity},
      {Op::kReshape, "reshape_twice", reshape_twice},
      {Op::kReshape, "reshape_broadcast", reshape_broadcast},
      {Op::kTranspose, "transpose_identity", transpose_identity},
      {Op::kTranspose, "transpose_twice", transpose_twice},
      {Op::kTranspose, "transpose_is_reshape", transpose_is_reshape},
      {Op::kTranspose, "transpose_broadcast", transpose_broadcast},
      {Op::kSlice, "slice_whole", slice_whole},
      {Op::kSlice, "slice_twice", slice_twice},
      {Op::kSlice, "slice_broadcast", slice_broadcast},
      {Op::kSlice, "slice_concat", slice_concat},
      {Op::kReverse, "reverse_ones", reverse_ones},
      {Op::kReverse, "reverse_twice", reverse_twice},
      {Op::kConcat, "concat_in_place", concat_in_place},
      {Op::kConcat, "concat_one", concat_one},
      {Op::kConcat, "concat_empty", concat_empty},
      {Op::kConcat, "concat_nested", concat_nested},
      {Op::kPad, "pad_nothing", pad_nothing},
      {Op::kPad, "pad_twice", pad_twice},
      {Op::kAdd, "add_parts", add_parts},
  };
  return kRules;
}

}  // namespace heddle::passes
