#include "passes/simplify/scatter_to_select.h"

#include <algorithm>
#include <optional>

#include "ir/builder.h"
#include "ir/reference/array.h"
#include "ir/rewrite.h"

namespace heddle::passes {
namespace {

using ir::Rewriter;

constexpr int64_t kMostKnown = int64_t{1} << 22;  // entries of a table of updates

// A scatter along the second of three dimensions: data [outer, n, inner], updates [outer, k, inner]. The dimensions
// that an index names are `named`; of slices all indices are the same for outer and inner.
struct Scatter {
  int64_t outer, n, inner, k;
  Shape named;
};

int64_t product(const Shape& shape, size_t first, size_t last) {
  int64_t n = 1;
  for (size_t i = first; i < last; ++i) n *= shape[i];
  return n;
}

std::optional<Scatter> scatter_of(const ir::Graph& graph, const Node& node) {
  const Shape data = graph.shape(node.inputs[0]), indices = graph.shape(node.inputs[1]);
  if (node.op == Op::kScatterNd) {
    const auto named = static_cast<size_t>(indices.back());
    return Scatter{1, product(data, 0, named), product(data, named, data.size()),
                   product(indices, 0, indices.size() - 1), Shape(data.begin(), data.begin() + indices.back())};
  }
  const auto dim = static_cast<size_t>(node.attrs.integer("dim"));
  if (indices != graph.shape(node.inputs[2]) || node.attrs.has("drop")) return std::nullopt;
  for (size_t d = 0; d < data.size(); ++d) {
    if (d != dim && indices[d] != data[d]) return std::nullopt;
  }
  return Scatter{product(data, 0, dim), data[dim], product(data, dim + 1, data.size()), indices[dim], {data[dim]}};
}

// For each element [outer or 1, n, inner or 1] the last update that goes there, or -1.
std::optional<Tensor> last_updates(const Tensor& indices, const Scatter& s) {
  const std::vector<int64_t> values = ir::to_array(indices).i();
  const size_t parts = s.named.size();
  const int64_t rows = static_cast<int64_t>(values.size() / parts) / s.k;  // outer times inner of the indices
  const int64_t inner = rows == 1 ? 1 : s.inner;
  if (rows * s.n > kMostKnown) return std::nullopt;
  std::vector<int32_t> update(static_cast<size_t>(rows * s.n), -1);
  for (int64_t i = 0; i < rows * s.k; ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < parts; ++d) {
      const int64_t index = values[static_cast<size_t>(i) * parts + d], extent = s.named[d];
      if (index < -extent || index >= extent) return std::nullopt;
      at = at * extent + (index < 0 ? index + extent : index);
    }
    const int64_t row = i / inner / s.k, k = i / inner % s.k, column = i % inner;
    update[static_cast<size_t>((row * s.n + at) * inner + column)] = static_cast<int32_t>(k);
  }
  return Tensor::of<int32_t>(DType::kI32, {rows / inner, s.n, inner}, std::span<const int32_t>(update));
}

// Data where nothing goes, else the update.
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

bool serves(const ir::Graph& graph, const Node& node) {
  const bool has_elements =
      std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return element_count(graph.shape(v)) > 0; });
  return has_elements && !node.attrs.has("in_place") && !graph.shape(node.inputs[0]).empty();
}

// One update for each row, as in the gradient of a loss that picks one class: elements are compared with their row's
// index.
std::optional<ValueId> compared(Rewriter& r, const Node& node) {
  const ir::Graph& graph = r.source();
  const std::string& kind = node.attrs.text("reduction");
  if (node.op != Op::kScatterElements || !serves(graph, node) || (kind != "none" && kind != "add")) return std::nullopt;
  const std::optional<Scatter> s = scatter_of(graph, node);
  if (!s || s->k != 1) return std::nullopt;
  ir::Builder b(r.target());
  b.set_origins(r.origins());
  const std::vector<ValueId> in = r(node.inputs);
  const Shape shape = {s->outer, s->n, s->inner};
  const ValueId data = b.reshape(in[0], shape),
                update = b.broadcast_to(b.reshape(in[2], {s->outer, 1, s->inner}), shape);
  // As a scatter's kernel reads it: negative ones count from the end, those outside are clamped.
  ValueId index = b.cast(b.reshape(in[1], {s->outer, 1, s->inner}), DType::kI64);
  const auto extent = static_cast<double>(s->n);
  index = b.select(b.binary(Op::kLt, index, 0.0), b.binary(Op::kAdd, index, extent), index);
  index = b.binary(Op::kMin, b.binary(Op::kMax, index, 0.0), extent - 1);
  const ValueId at = b.emit(Op::kIota, {}, {{"shape", shape}, {"dim", int64_t{1}}, {"dtype", DType::kI64}});
  const ValueId value = kind == "add" ? b.binary(Op::kAdd, data, update) : update;
  const ValueId is_here = b.binary(Op::kEq, at, b.broadcast_to(index, shape));
  return b.reshape(b.select(is_here, value, data), graph.shape(node.inputs[0]));
}

std::optional<ValueId> looked_up(Rewriter& r, const Node& node) {
  const ir::Graph& graph = r.source();
  const Tensor* indices = graph.constant_of(node.inputs[1]);
  if (indices == nullptr || node.attrs.text("reduction") != "none" || !serves(graph, node)) return std::nullopt;
  const std::optional<Scatter> s = scatter_of(graph, node);
  if (!s) return std::nullopt;
  const std::optional<Tensor> update = last_updates(*indices, *s);
  if (!update) return std::nullopt;
  ir::Builder b(r.target());
  b.set_origins(r.origins());
  const std::vector<ValueId> in = r(node.inputs);
  const ValueId data = b.reshape(in[0], {s->outer, s->n, s->inner});
  const ValueId updates = b.reshape(in[2], {s->outer, s->k, s->inner});
  return b.reshape(replaced(b, data, updates, b.constant(*update)), graph.shape(node.inputs[0]));
}

}  // namespace

ir::Graph scatter_to_select(const ir::Graph& graph, const PassContext&) {
  return Rewriter(graph).run([](Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    if (node.op != Op::kScatterElements && node.op != Op::kScatterNd) return std::nullopt;
    std::optional<ValueId> result = looked_up(r, node);
    if (!result) result = compared(r, node);
    if (!result) return std::nullopt;
    return std::vector<ValueId>{*result};
  });
}

}  // namespace heddle::passes
