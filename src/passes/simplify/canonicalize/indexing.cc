#include <algorithm>

#include "ir/reference/scalar.h"
#include "passes/rewrite/emitter.h"

namespace heddle::passes {
namespace {

using Result = std::optional<ValueId>;

// The elements of a small constant of indices, negative ones made positive; nothing when one is outside.
std::optional<Ints> known_indices(const Match& m, ValueId v, int64_t extent) {
  constexpr int64_t kMost = 4096;
  if (!m.e.is(v, Op::kConstant) || m.e.count(v) > kMost) return std::nullopt;
  const Tensor& tensor = m.e.def(v).attrs.tensor("value");
  Ints values;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    int64_t index = ir::integer_at(tensor, i);
    if (index < 0) index += extent;
    if (index < 0 || index >= extent) return std::nullopt;
    values.push_back(index);
  }
  return values;
}

// Constant indices in even steps upwards are a slice.
Result gather_is_slice(const Match& m) {
  const size_t dim = at(m.attrs.integer("dim"));
  const Shape data = m.e.shape(m.in[0]), shape = m.e.shape(m.in[1]);
  const auto indices = known_indices(m, m.in[1], data[dim]);
  if (!indices || indices->empty()) return {};
  const int64_t step = indices->size() > 1 ? (*indices)[1] - (*indices)[0] : 1;
  for (size_t i = 1; i < indices->size(); ++i) {
    if (step < 1 || (*indices)[i] - (*indices)[i - 1] != step) return {};
  }
  Ints starts(data.size(), 0), limits = data, strides(data.size(), 1);
  starts[dim] = indices->front();
  limits[dim] = indices->back() + 1;
  strides[dim] = step;
  Shape to(data.begin(), data.begin() + static_cast<int64_t>(dim));
  to.insert(to.end(), shape.begin(), shape.end());
  to.insert(to.end(), data.begin() + static_cast<int64_t>(dim) + 1, data.end());
  return m.e.reshape(m.e.slice(m.in[0], starts, limits, strides), to);
}
Result gather_is_reverse(const Match& m) {
  const int64_t dim = m.attrs.integer("dim");
  const int64_t extent = m.e.shape(m.in[0])[at(dim)];
  if (m.e.shape(m.in[1]) != Shape{extent} || extent < 2) return {};
  const auto indices = known_indices(m, m.in[1], extent);
  if (!indices) return {};
  for (int64_t i = 0; i < extent; ++i) {
    if ((*indices)[at(i)] != extent - 1 - i) return {};
  }
  return m.e.emit(Op::kReverse, {m.in[0]}, {{"dims", Ints{dim}}});
}

// ---- reductions ----

Shape remove_dims(const Shape& shape, const Ints& dims) {
  Shape result;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (index_of(dims, static_cast<int64_t>(d)) < 0) result.push_back(shape[d]);
  }
  return result;
}
Result reduce_nothing(const Match& m) {
  if (!m.attrs.ints("dims").empty()) return {};
  return m.in[0];
}
// Dimensions of extent 1 go by a reshape.
Result reduce_ones(const Match& m) {
  const Shape shape = m.e.shape(m.in[0]);
  Ints ones, rest;
  for (int64_t d : m.attrs.ints("dims")) (shape[at(d)] == 1 ? ones : rest).push_back(d);
  if (ones.empty()) return {};
  const ValueId smaller = m.e.reshape(m.in[0], remove_dims(shape, ones));
  for (int64_t& d : rest) d -= std::count_if(ones.begin(), ones.end(), [&](int64_t one) { return one < d; });
  return m.e.emit(Op::kReduce, {smaller}, {{"kind", m.attrs.text("kind")}, {"dims", rest}});
}
Result reduce_twice(const Match& m) {
  const Node& inner = m.e.def(m.in[0]);
  if (inner.op != Op::kReduce || inner.attrs.text("kind") != m.attrs.text("kind")) return {};
  Ints kept = counting(m.e.shape(inner.inputs[0]).size());
  for (int64_t d : inner.attrs.ints("dims")) kept.erase(std::find(kept.begin(), kept.end(), d));
  Ints dims = inner.attrs.ints("dims");
  for (int64_t d : m.attrs.ints("dims")) dims.push_back(kept[at(d)]);
  std::sort(dims.begin(), dims.end());
  return m.e.emit(Op::kReduce, {inner.inputs[0]}, {{"kind", m.attrs.text("kind")}, {"dims", dims}});
}

// ---- windows ----

bool all_equal(const Ints& values, int64_t value) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == value; });
}
Result window_of_one(const Match& m) {
  const Ints &low = m.attrs.ints("low"), &high = m.attrs.ints("high");
  if (!all_equal(m.attrs.ints("window"), 1) || !all_equal(m.attrs.ints("strides"), 1) || !all_equal(low, 0) ||
      !all_equal(high, 0)) {
    return {};
  }
  return m.in[0];
}
// Where every window spans the whole extent of a dimension, as those of spatial pyramids do on small images, that
// dimension is reduced once for all of them.
Result window_is_reduce(const Match& m) {
  const Shape shape = m.e.shape(m.in[0]);
  Ints window = m.attrs.ints("window"), strides = m.attrs.ints("strides"), low = m.attrs.ints("low"),
       high = m.attrs.ints("high"), dilations = m.attrs.ints("dilations");
  Ints dims;
  Shape kept = shape, to = shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    to[d] = (shape[d] + low[d] + high[d] - (window[d] - 1) * dilations[d] - 1) / strides[d] + 1;
    if (window[d] == 1 && strides[d] == 1 && low[d] == 0 && high[d] == 0) continue;
    const bool from_begin = low[d] >= 0 && (to[d] - 1) * strides[d] <= low[d], to_end = window[d] - low[d] >= shape[d];
    if (shape[d] == 0 || to[d] < 1 || !from_begin || !to_end || (window[d] > 1 && dilations[d] != 1)) continue;
    dims.push_back(static_cast<int64_t>(d));
    window[d] = strides[d] = dilations[d] = kept[d] = 1, low[d] = high[d] = 0;
  }
  if (dims.empty()) return {};
  const std::string kind = m.attrs.text("kind");
  const ValueId reduced = m.e.reshape(m.e.emit(Op::kReduce, {m.in[0]}, {{"kind", kind}, {"dims", dims}}), kept);
  Attrs attrs = m.attrs;
  attrs.set("window", window), attrs.set("strides", strides), attrs.set("dilations", dilations);
  attrs.set("low", low), attrs.set("high", high);
  const ValueId rest = m.e.emit(Op::kWindowReduce, {reduced}, attrs);
  return m.e.broadcast(rest, to, counting(shape.size()));
}

}  // namespace

std::span<const Rule> indexing_rules() {
  static constexpr Rule kRules[] = {
      {Op::kGather, "gather_is_slice", gather_is_slice},
      {Op::kGather, "gather_is_reverse", gather_is_reverse},
      {Op::kReduce, "reduce_nothing", reduce_nothing},
      {Op::kReduce, "reduce_ones", reduce_ones},
      {Op::kReduce, "reduce_twice", reduce_twice},
      {Op::kWindowReduce, "window_of_one", window_of_one},
      {Op::kWindowReduce, "window_is_reduce", window_is_reduce},
  };
  return kRules;
}

}  // namespace heddle::passes
