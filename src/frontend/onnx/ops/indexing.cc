#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "frontend/onnx/lowering/op_helpers.h"
#include "frontend/onnx/op_registry.h"
#include "ir/reference/array.h"

namespace heddle::onnx {
namespace {

void gather(NodeContext& ctx) {
  ctx.set(0, ctx.b.gather(ctx.in(0), ctx.in(1), ctx.axis(ctx.attr_int("axis", 0), ctx.rank(0))));
}

void gather_elements(NodeContext& ctx) {
  const int64_t dim = ctx.axis(ctx.attr_int("axis", 0), ctx.rank(0));
  ctx.set(0, ctx.b.emit(Op::kGatherElements, {ctx.in(0), ctx.in(1)}, {{"dim", dim}}));
}

void gather_nd(NodeContext& ctx) {
  ctx.set(0, ctx.b.emit(Op::kGatherNd, {ctx.in(0), ctx.in(1)}, {{"batch_dims", ctx.attr_int("batch_dims", 0)}}));
}

std::string reduction_of(NodeContext& ctx) {
  std::string kind = ctx.attr_string("reduction", "none");
  if (kind != "none" && kind != "add" && kind != "mul" && kind != "max" && kind != "min") {
    ctx.invalid("reduction '" + kind + "' is unknown");
  }
  return kind;
}

void scatter_elements(NodeContext& ctx) {
  const int64_t dim = ctx.axis(ctx.attr_int("axis", 0), ctx.rank(0));
  ctx.set(0, ctx.b.emit(Op::kScatterElements, {ctx.in(0), ctx.in(1), ctx.in(2)},
                        {{"dim", dim}, {"reduction", reduction_of(ctx)}}));
}

void scatter_nd(NodeContext& ctx) {
  ctx.set(0, ctx.b.emit(Op::kScatterNd, {ctx.in(0), ctx.in(1), ctx.in(2)}, {{"reduction", reduction_of(ctx)}}));
}

// Writes `update` into a cache along `axis`, from a position that each batch entry has.
void tensor_scatter(NodeContext& ctx) {
  const Shape cache = ctx.shape(0), update = ctx.shape(1);
  const int64_t axis = ctx.axis(ctx.attr_int("axis", -2), ctx.rank(0));
  const std::string mode = ctx.attr_string("mode", "linear");
  if (mode != "linear" && mode != "circular") ctx.invalid("mode must be linear or circular");
  if (update.size() != cache.size() || axis == 0)
    ctx.invalid("cache and update must have one rank, axis must not be 0");
  ValueId position = ctx.b.iota(DType::kI64, update, axis);
  if (ctx.has(2)) {
    Shape batch(update.size(), 1);
    batch[0] = update[0];
    position = ctx.b.add(position, ctx.b.reshape(ctx.b.cast(ctx.in(2), DType::kI64), batch));
  }
  if (mode == "circular") {
    position = ctx.b.binary(Op::kMod, position, static_cast<double>(cache[static_cast<size_t>(axis)]));
  }
  ctx.set(0,
          ctx.b.emit(Op::kScatterElements, {ctx.in(0), position, ctx.in(1)}, {{"dim", axis}, {"reduction", "none"}}));
}

void one_hot(NodeContext& ctx) {
  const Shape shape = ctx.shape(0);
  const int64_t rank = ctx.rank(0) + 1, axis = ctx.axis(ctx.attr_int("axis", -1), rank);
  const double given_depth = ctx.constant_real(1);
  if (!(given_depth >= 0 && given_depth < 1e15)) ctx.invalid("the depth is negative or too large");
  const auto depth = static_cast<int64_t>(given_depth);
  Shape to = shape;
  to.insert(to.begin() + axis, depth);
  const ValueId given = ctx.b.cast(ctx.in(0), DType::kI64);
  const ValueId wrapped = ctx.b.binary(Op::kAdd, given, static_cast<double>(depth));
  const ValueId index = ctx.b.select(ctx.b.binary(Op::kLt, given, 0.0), wrapped, given);
  const ValueId hit = ctx.b.binary(Op::kEq, unsqueeze(ctx.b, index, {axis}), ctx.b.iota(DType::kI64, to, axis));
  if (ctx.shape(2) != Shape{2}) ctx.invalid("the values must be two numbers: off and on");
  const auto choice = [&](int64_t i) { return ctx.b.reshape(ctx.b.slice_dim(ctx.in(2), 0, i, i + 1), {}); };
  const ValueId off = choice(0), on = choice(1);
  ctx.set(0, ctx.b.select(hit, on, off));
}

void non_zero(NodeContext& ctx) {
  const Shape shape = ctx.shape(0);
  const ir::Array x = ir::to_array(ctx.constant_of(ctx.b.cast(ctx.in(0), DType::kBool)));
  Ints hits;
  for (int64_t i = 0; i < x.size(); ++i) {
    if (x.i()[static_cast<size_t>(i)] != 0) hits.push_back(i);
  }
  Ints result;
  int64_t stride = x.size();
  for (const int64_t extent : shape) {
    if (extent == 0) break;
    stride /= extent;
    for (const int64_t at : hits) result.push_back(at / stride % extent);
  }
  ctx.set(0, int_constant(ctx.b, {static_cast<int64_t>(shape.size()), static_cast<int64_t>(hits.size())},
                          std::move(result)));
}

void compress(NodeContext& ctx) {
  const Ints condition = ctx.constant_ints(1);
  ValueId x = ctx.in(0);
  int64_t axis = 0;
  if (ctx.has_attr("axis")) {
    axis = ctx.axis(ctx.attr_int("axis"), ctx.rank(0));
  } else {
    x = ctx.b.reshape(x, {element_count(ctx.shape(0))});
  }
  const int64_t extent = ctx.b.shape(x)[static_cast<size_t>(axis)];
  Ints kept;
  for (size_t i = 0; i < condition.size(); ++i) {
    if (condition[i] == 0) continue;
    if (static_cast<int64_t>(i) >= extent) ctx.invalid("the condition is longer than the dimension");
    kept.push_back(static_cast<int64_t>(i));
  }
  ctx.set(0, ctx.b.gather(x, ctx.b.ints(kept), axis));
}

// The data as rows: one row for each index along the axis.
struct Rows {
  ValueId moved;  // axis first
  int64_t count, width;
  ir::Array values;
  // Three-way comparison of two rows; NaN is equal to itself only by position, as in numpy.
  int compare(int64_t a, int64_t b) const {
    for (int64_t i = 0; i < width; ++i) {
      const auto at = static_cast<size_t>(a * width + i), to = static_cast<size_t>(b * width + i);
      if (values.real() ? values.f()[at] < values.f()[to] : values.i()[at] < values.i()[to]) return -1;
      if (values.real() ? values.f()[at] > values.f()[to] : values.i()[at] > values.i()[to]) return 1;
    }
    return 0;
  }
};

void unique(NodeContext& ctx) {
  const bool by_axis = ctx.has_attr("axis");
  const int64_t axis = by_axis ? ctx.axis(ctx.attr_int("axis"), ctx.rank(0)) : 0;
  Rows rows;
  rows.moved = by_axis ? move_axis(ctx.b, ctx.in(0), axis, 0) : ctx.b.reshape(ctx.in(0), {element_count(ctx.shape(0))});
  rows.values = ir::to_array(ctx.constant_of(rows.moved));
  rows.count = rows.values.shape[0];
  rows.width = rows.count == 0 ? 0 : rows.values.size() / rows.count;
  Ints order = int_range(rows.count);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return rows.compare(a, b) < 0; });
  Ints first, counts, inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || rows.compare(order[i - 1], order[i]) != 0) {
      first.push_back(order[i]);
      counts.push_back(0);
    }
    ++counts.back();
    inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(first.size()) - 1;
  }
  if (ctx.attr_int("sorted", 1) == 0) {  // in order of first appearance
    Ints by_place = int_range(static_cast<int64_t>(first.size())), rank(first.size()), f, c;
    std::sort(by_place.begin(), by_place.end(), [&](int64_t a, int64_t b) { return first[a] < first[b]; });
    for (size_t i = 0; i < by_place.size(); ++i) {
      rank[static_cast<size_t>(by_place[i])] = static_cast<int64_t>(i);
      f.push_back(first[static_cast<size_t>(by_place[i])]);
      c.push_back(counts[static_cast<size_t>(by_place[i])]);
    }
    for (int64_t& i : inverse) i = rank[static_cast<size_t>(i)];
    first = f;
    counts = c;
  }
  const ValueId chosen = ctx.b.gather(rows.moved, ctx.b.ints(first), 0);
  ctx.set(0, by_axis ? move_axis(ctx.b, chosen, 0, axis) : chosen);
  ctx.set(1, ctx.b.ints(first));
  ctx.set(2, ctx.b.ints(inverse));
  ctx.set(3, ctx.b.ints(counts));
}

}  // namespace

std::span<const OpHandler> indexing_ops() {
  static constexpr std::array kTable = {
      OpHandler{"", "Compress", 9, kAnyVersion, compress, true},
      OpHandler{"", "Gather", 1, kAnyVersion, gather, true},
      OpHandler{"", "GatherElements", 11, kAnyVersion, gather_elements, true},
      OpHandler{"", "GatherND", 11, kAnyVersion, gather_nd, true},
      OpHandler{"", "NonZero", 9, kAnyVersion, non_zero},
      OpHandler{"", "OneHot", 9, kAnyVersion, one_hot},
      OpHandler{"", "Scatter", 9, kAnyVersion, scatter_elements},
      OpHandler{"", "ScatterElements", 11, kAnyVersion, scatter_elements},
      OpHandler{"", "ScatterND", 11, kAnyVersion, scatter_nd},
      OpHandler{"", "TensorScatter", 24, kAnyVersion, tensor_scatter},
      OpHandler{"", "Unique", 11, kAnyVersion, unique},
  };
  return kTable;
}

}  // namespace heddle::onnx
