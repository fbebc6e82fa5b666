#include "passes/compare_indices.h"

#include <cmath>
#include <optional>

#include "ir/array.h"
#include "ir/builder.h"
#include "ir/rewrite.h"

namespace heddle::passes {
namespace {

using ir::Ints;
using ir::Node;
using ir::Op;
using ir::Rewriter;
using ir::ValueId;

// What a GPU compares in the time that handing data to the host and back takes.
constexpr int64_t kMostComparisons = int64_t{1} << 28;

// A scatter along the second of three dimensions: data [outer, n, inner], updates [outer, k, inner]. Indices are
// [outer, k, inner], or [1, k, 1] where they are the same for all rows.
struct Scatter {
  ValueId data, indices, updates;
  int64_t outer, n, inner, k;
  std::string kind;
};

int64_t product(const Shape& shape, size_t first, size_t last) {
  int64_t n = 1;
  for (size_t i = first; i < last; ++i) n *= shape[i];
  return n;
}

bool affordable(const Scatter& s, bool same_for_rows) {
  const double all = static_cast<double>(s.n) * static_cast<double>(s.k);
  const bool per_row = !same_for_rows || s.kind != "none";
  const double rows = per_row ? static_cast<double>(s.outer) * static_cast<double>(s.inner) : 1;
  return all * rows <= static_cast<double>(kMostComparisons);
}

// Indices in [0, extent), for numbers that may count from the end.
ValueId from_the_front(ir::Builder& b, ValueId indices, int64_t extent) {
  const ValueId wide = b.cast(indices, DType::kI64);
  const auto n = static_cast<double>(extent);
  return b.select(b.binary(Op::kLt, wide, 0.0), b.binary(Op::kAdd, wide, n), wide);
}

std::optional<Scatter> of_elements(ir::Builder& b, const Node& node, const std::vector<ValueId>& in) {
  const Shape data = b.shape(in[0]), indices = b.shape(in[1]);
  const auto dim = static_cast<size_t>(node.attrs.integer("dim"));
  for (size_t d = 0; d < data.size(); ++d) {
    if (d != dim && indices[d] != data[d]) return std::nullopt;
  }
  const int64_t outer = product(data, 0, dim), inner = product(data, dim + 1, data.size());
  return Scatter{in[0], in[1], in[2], outer, data[dim], inner, indices[dim], node.attrs.text("reduction")};
}

// The first dimensions of the data, which an index names, become one.
Scatter of_slices(ir::Builder& b, const Node& node, const std::vector<ValueId>& in) {
  const Shape data = b.shape(in[0]), indices = b.shape(in[1]);
  const auto named = static_cast<size_t>(indices.back());
  const int64_t last = static_cast<int64_t>(indices.size()) - 1;
  const int64_t k = product(indices, 0, indices.size() - 1);
  ValueId linear = b.full(DType::kI64, {k}, 0);
  for (size_t d = 0; d < named; ++d) {
    const auto at = static_cast<int64_t>(d);
    const ValueId part = b.reshape(b.slice_dim(in[1], last, at, at + 1), {k});
    const auto stride = static_cast<double>(product(data, d + 1, named));
    linear = b.add(linear, b.binary(Op::kMul, from_the_front(b, part, data[d]), stride));
  }
  const int64_t n = product(data, 0, named), inner = product(data, named, data.size());
  return {in[0], linear, in[2], 1, n, inner, k, node.attrs.text("reduction")};
}

// For each of these elements the last update that goes there, or -1; both are counted within their rows.
ValueId last_update(ir::Builder& b, ValueId indices, int64_t n) {
  const Shape shape = b.shape(indices);
  const Shape all = {shape[0], n, shape[1], shape[2]};
  const ValueId wanted = b.broadcast(indices, all, {0, 2, 3});
  const ValueId hit = b.binary(Op::kEq, wanted, b.iota(DType::kI64, all, 1));
  const ValueId update = b.select(hit, b.iota(DType::kI32, all, 2), b.full(DType::kI32, all, -1));
  return b.reduce("max", update, {2});
}

// The same for indices [outer, k, inner] that are constants.
std::optional<ValueId> known_update(ir::Builder& b, const ir::Graph& source, ValueId indices, const Scatter& s,
                                    const Shape& named) {
  const Tensor* constant = source.constant_of(indices);
  if (constant == nullptr || s.kind != "none") return std::nullopt;
  const std::vector<int64_t> values = ir::to_array(*constant).i();
  const size_t parts = named.size();
  const int64_t rows = static_cast<int64_t>(values.size() / parts) / s.k;  // outer times inner of the indices
  const int64_t inner = rows == 1 ? 1 : s.inner;
  std::vector<int32_t> update(static_cast<size_t>(rows * s.n), -1);
  for (int64_t i = 0; i < rows * s.k; ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < parts; ++d) {
      const int64_t index = values[static_cast<size_t>(i) * parts + d], extent = named[d];
      if (index < -extent || index >= extent) return std::nullopt;
      at = at * extent + (index < 0 ? index + extent : index);
    }
    const int64_t row = i / inner / s.k, k = i / inner % s.k, column = i % inner;
    update[static_cast<size_t>((row * s.n + at) * inner + column)] = static_cast<int32_t>(k);
  }
  const Shape shape = {rows / inner, s.n, inner};
  return b.constant(Tensor::of<int32_t>(DType::kI32, shape, std::span<const int32_t>(update)));
}

// data where nothing goes, else the update.
ValueId replaced(ir::Builder& b, ValueId data, ValueId updates, ValueId update) {
  const Shape shape = b.shape(data), rows = b.shape(update);
  const ValueId some = b.binary(Op::kMax, update, 0.0);
  ValueId value;
  if (rows[0] == 1 && rows[2] == 1) {
    value = b.gather(updates, b.reshape(some, {rows[1]}), 1);
  } else {
    value = b.emit(Op::kGatherElements, {updates, some}, {{"dim", int64_t{1}}});
  }
  return b.select(b.broadcast_to(b.binary(Op::kGe, update, 0.0), shape), value, data);
}

double neutral(const std::string& kind, DType type) {
  if (kind == "add") return 0;
  if (kind == "mul") return 1;
  const bool lowest = kind == "max";
  if (is_float(type)) return lowest ? -HUGE_VAL : HUGE_VAL;
  const int bits = bits_of(type);
  if (is_unsigned_int(type)) return lowest ? 0 : std::ldexp(1, bits) - 1;
  return lowest ? -std::ldexp(1, bits - 1) : std::ldexp(1, bits - 1) - 1;
}

ValueId combined(ir::Builder& b, const Scatter& s, ValueId data, ValueId updates, ValueId indices) {
  const Shape all = {s.outer, s.n, s.k, s.inner};
  const DType type = b.dtype(data);
  const ValueId wanted = b.broadcast(indices, all, {0, 2, 3});
  const ValueId hit = b.binary(Op::kEq, wanted, b.iota(DType::kI64, all, 1));
  const ValueId none = b.full(type, all, neutral(s.kind, type));
  const ValueId parts = b.select(hit, b.broadcast(updates, all, {0, 2, 3}), none);
  const bool add = s.kind == "add", mul = s.kind == "mul";
  const ValueId result = b.reduce(add ? "sum" : mul ? "prod" : s.kind.c_str(), parts, {2});
  return b.binary(add ? Op::kAdd : mul ? Op::kMul : s.kind == "max" ? Op::kMax : Op::kMin, data, result);
}

bool comparable(const ir::Graph& graph, const Node& node) {
  for (const ValueId v : node.inputs) {
    if (element_count(graph.shape(v)) == 0) return false;
  }
  if (graph.shape(node.inputs[0]).empty()) return false;
  const std::string& kind = node.attrs.text("reduction");
  if (kind == "none") return true;
  // Kernels combine whole bytes; the ends of 64 bits are no doubles.
  const DType type = graph.dtype(node.inputs[0]);
  if (is_float(type)) return size_of(type) >= 2;
  return bits_of(type) >= 8 && (bits_of(type) <= 32 || kind == "add" || kind == "mul");
}

std::optional<ValueId> as_comparisons(Rewriter& r, const Node& node) {
  const ir::Graph& source = r.source();
  if (!comparable(source, node)) return std::nullopt;
  ir::Builder b(r.target());
  b.set_origins(r.origins());
  const std::vector<ValueId> in = r(node.inputs);
  const bool slices = node.op == Op::kScatterNd;
  const std::optional<Scatter> found = slices ? of_slices(b, node, in) : of_elements(b, node, in);
  if (!found) return std::nullopt;
  const Scatter& s = *found;
  const Shape shape = b.shape(s.data), data = source.shape(node.inputs[0]);
  const ValueId rows = b.reshape(s.data, {s.outer, s.n, s.inner}),
                updates = b.reshape(s.updates, {s.outer, s.k, s.inner});
  Shape named = {s.n};
  if (slices) named.assign(data.begin(), data.begin() + source.shape(node.inputs[1]).back());
  if (const auto update = known_update(b, source, node.inputs[1], s, named)) {
    return b.reshape(replaced(b, rows, updates, *update), shape);
  }
  if (!affordable(s, slices)) return std::nullopt;
  const Shape own = slices ? Shape{1, s.k, 1} : Shape{s.outer, s.k, s.inner};
  const ValueId indices = from_the_front(b, b.reshape(s.indices, own), s.n);
  if (s.kind == "none") return b.reshape(replaced(b, rows, updates, last_update(b, indices, s.n)), shape);
  return b.reshape(combined(b, s, rows, updates, b.broadcast_to(indices, {s.outer, s.k, s.inner})), shape);
}

}  // namespace

ir::Graph compare_indices(const ir::Graph& graph, const PassContext& context) {
  if (context.target.kind != TargetKind::kCuda) return graph;
  return Rewriter(graph).run([](Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    if (node.op != Op::kScatterElements && node.op != Op::kScatterNd) return std::nullopt;
    const std::optional<ValueId> result = as_comparisons(r, node);
    if (!result) return std::nullopt;
    return std::vector<ValueId>{*result};
  });
}

}  // namespace heddle::passes
