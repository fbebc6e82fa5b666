#include "passes/simplify/update_in_place.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/builder.h"
#include "ir/rewrite.h"

namespace heddle::passes {
namespace {

using ir::Graph;
using ir::Rewriter;

constexpr int64_t kNowhere = -1;

// By dimension of the first shape: the dimension of the second one that it is, kNowhere where its extent is 1. Nothing
// where the shapes differ in more than dimensions of extent 1.
std::optional<Ints> same_dims(const Shape& of, const Shape& in) {
  Ints dims(of.size(), kNowhere);
  size_t at = 0;
  const auto skip_ones = [&] {
    while (at < in.size() && in[at] == 1) ++at;
  };
  for (size_t d = 0; d < of.size(); ++d) {
    if (of[d] == 1) continue;
    skip_ones();
    if (at == in.size() || in[at] != of[d]) return std::nullopt;
    dims[d] = static_cast<int64_t>(at++);
  }
  skip_ones();
  return at == in.size() ? std::optional(dims) : std::nullopt;
}

// A value behind broadcasts and reshapes, and which of its dimensions each dimension of the outer value is (kNowhere:
// it is the same along that one).
struct Viewed {
  ValueId value;
  Ints dims;
};

Viewed behind_views(const Graph& graph, ValueId value) {
  Viewed seen{value, Ints(graph.shape(value).size())};
  std::iota(seen.dims.begin(), seen.dims.end(), int64_t{0});
  for (;;) {
    const Node& node = graph.producer(seen.value);
    Ints inner;
    if (node.op == Op::kBroadcast) {
      const Ints& to = node.attrs.ints("dims");
      const Shape &from = graph.shape(node.inputs[0]), &shape = graph.shape(seen.value);
      inner.assign(shape.size(), kNowhere);
      for (size_t i = 0; i < to.size(); ++i) {
        const auto d = static_cast<size_t>(to[i]);
        if (from[i] == shape[d]) inner[d] = static_cast<int64_t>(i);
      }
    } else if (node.op == Op::kReshape) {
      const auto same = same_dims(graph.shape(seen.value), graph.shape(node.inputs[0]));
      if (!same) return seen;
      inner = *same;
    } else {
      return seen;
    }
    for (int64_t& d : seen.dims) d = d == kNowhere ? kNowhere : inner[static_cast<size_t>(d)];
    seen.value = node.inputs[0];
  }
}

// Whether the elements of a value along a dimension are all the same.
bool is_same_along(const Graph& graph, ValueId value, int64_t dim) {
  if (graph.shape(value)[static_cast<size_t>(dim)] == 1) return true;
  const Viewed seen = behind_views(graph, value);
  const int64_t inner = seen.dims[static_cast<size_t>(dim)];
  if (inner == kNowhere) return true;
  const Node& node = graph.producer(seen.value);
  if (node.op == Op::kIota) return node.attrs.integer("dim") != inner;
  if (!ir::is_elementwise(node.op)) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId operand) { return is_same_along(graph, operand, inner); });
}

// The dimension along which a value counts its elements from 0.
std::optional<int64_t> counts_along(const Graph& graph, ValueId value) {
  const Viewed seen = behind_views(graph, value);
  const Node& node = graph.producer(seen.value);
  if (!is_int(graph.dtype(seen.value)) || size_of(graph.dtype(seen.value)) < 4) return std::nullopt;
  std::optional<int64_t> inner;
  if (node.op == Op::kIota) inner = node.attrs.integer("dim");
  if (node.op == Op::kCast) inner = counts_along(graph, node.inputs[0]);
  if (!inner) return std::nullopt;
  const auto at = std::find(seen.dims.begin(), seen.dims.end(), *inner);
  return at == seen.dims.end() ? std::nullopt : std::optional<int64_t>(at - seen.dims.begin());
}

// select(counts == index, fresh, data): where the elements go.
struct Selected {
  int64_t dim;    // of the selection
  ValueId index;  // an operand of the comparison
  int64_t along;  // the comparison's dimension that is `dim`
  Ints dims;      // by dimension of the selection: that of the comparison
  ValueId fresh;
};

std::optional<Selected> find_selection(const Graph& graph, const Node& select, ValueId data) {
  const bool is_equal_for_new = select.inputs[2] == data;
  if (!is_equal_for_new && select.inputs[1] != data) return std::nullopt;
  const ValueId fresh = select.inputs[is_equal_for_new ? 1 : 2];
  const Viewed condition = behind_views(graph, select.inputs[0]);
  const Node& compare = graph.producer(condition.value);
  if (compare.op != (is_equal_for_new ? Op::kEq : Op::kNe)) return std::nullopt;
  for (const size_t side : {0, 1}) {
    const ValueId index = compare.inputs[1 - side];
    const auto along = counts_along(graph, compare.inputs[side]);
    if (!along || !is_int(graph.dtype(index)) || !is_same_along(graph, index, *along)) continue;
    const auto at = std::find(condition.dims.begin(), condition.dims.end(), *along);
    if (at == condition.dims.end()) continue;
    const int64_t dim = at - condition.dims.begin();
    if (!is_same_along(graph, fresh, dim)) continue;
    return Selected{dim, index, *along, condition.dims, fresh};
  }
  return std::nullopt;
}

ir::Attrs scatter_attrs(int64_t dim, bool drop) {
  ir::Attrs attrs{{"dim", dim}, {"reduction", "none"}, {"in_place", int64_t{1}}};
  if (drop) attrs.set("drop", int64_t{1});
  return attrs;
}

ValueId emit_selection(Rewriter& r, ir::Builder& b, const Selected& s, ValueId data) {
  const ValueId index = b.slice_dim(b.cast(r(s.index), DType::kI64), s.along, 0, 1);
  Shape shape;
  for (const int64_t d : s.dims) shape.push_back(d == kNowhere ? 1 : b.shape(index)[static_cast<size_t>(d)]);
  const ValueId fresh = b.slice_dim(r(s.fresh), s.dim, 0, 1);
  return b.emit(Op::kScatterElements, {r(data), b.reshape(index, shape), fresh}, scatter_attrs(s.dim, true));
}

// concat(data[:start], fresh, data[start + n:]).
struct Joined {
  int64_t dim, start;
  ValueId fresh;
};

std::optional<Joined> find_joined(const Graph& graph, const Node& concat, ValueId data) {
  const int64_t dim = concat.attrs.integer("dim");
  const Shape& shape = graph.shape(concat.outputs[0]);
  if (graph.shape(data) != shape) return std::nullopt;
  std::optional<Joined> found;
  int64_t start = 0;
  for (const ValueId part : concat.inputs) {
    const Node& node = graph.producer(part);
    const int64_t length = graph.shape(part)[static_cast<size_t>(dim)];
    Ints starts(shape.size(), 0);
    starts[static_cast<size_t>(dim)] = start;
    const bool kept = node.op == Op::kSlice && node.inputs[0] == data && node.attrs.ints("starts") == starts &&
                      node.attrs.ints("strides") == Ints(shape.size(), 1);
    if (!kept && found) return std::nullopt;
    if (!kept) found = Joined{dim, start, part};
    start += length;
  }
  return found;
}

ValueId emit_joined(Rewriter& r, ir::Builder& b, const Joined& j, ValueId data) {
  const int64_t count = b.shape(r(j.fresh))[static_cast<size_t>(j.dim)];
  Shape shape(b.shape(r(data)).size(), 1);
  shape[static_cast<size_t>(j.dim)] = count;
  const ValueId index = b.binary(Op::kAdd, b.iota(DType::kI64, shape, j.dim), static_cast<double>(j.start));
  return b.emit(Op::kScatterElements, {r(data), index, r(j.fresh)}, scatter_attrs(j.dim, false));
}

// transpose(scatter_nd(transpose(data), slices of one dimension), back).
const Node* find_transposed(const Graph& graph, const Node& node, ValueId data) {
  const Node& scatter = graph.producer(node.inputs[0]);
  if (scatter.op != Op::kScatterNd || graph.shape(scatter.inputs[1]).back() != 1) return nullptr;
  const Node& there = graph.producer(scatter.inputs[0]);
  if (there.op != Op::kTranspose || there.inputs[0] != data) return nullptr;
  const Ints &perm = there.attrs.ints("perm"), &back = node.attrs.ints("perm");
  for (size_t d = 0; d < perm.size(); ++d) {
    if (perm[static_cast<size_t>(back[d])] != static_cast<int64_t>(d)) return nullptr;
  }
  return &scatter;
}

ValueId emit_transposed(Rewriter& r, ir::Builder& b, const Node& node, const Node& scatter, ValueId data) {
  const Ints& back = node.attrs.ints("perm");
  const auto at = std::find(back.begin(), back.end(), 0) - back.begin();
  const ValueId index = r(scatter.inputs[1]);
  const int64_t count = element_count(b.shape(index));
  Shape moved = b.shape(r(scatter.inputs[0])), shape(back.size(), 1);
  moved[0] = count;
  shape[static_cast<size_t>(at)] = count;
  ir::Attrs attrs = scatter_attrs(at, false);
  attrs.set("reduction", scatter.attrs.text("reduction"));
  const ValueId fresh = b.transpose(b.reshape(r(scatter.inputs[2]), moved), back);
  return b.emit(Op::kScatterElements, {r(data), b.reshape(index, shape), fresh}, std::move(attrs));
}

// The same indices with extent 1 where a broadcast made them equal.
ValueId without_broadcast(const Graph& graph, Rewriter& r, ir::Builder& b, ValueId indices) {
  const Viewed seen = behind_views(graph, indices);
  Shape shape;
  int64_t count = 1;
  for (const int64_t d : seen.dims) {
    shape.push_back(d == kNowhere ? 1 : graph.shape(seen.value)[static_cast<size_t>(d)]);
    count *= shape.back();
  }
  return count == element_count(graph.shape(seen.value)) ? b.reshape(r(seen.value), shape) : r(indices);
}

ValueId emit_scatter(Rewriter& r, ir::Builder& b, const Node& node) {
  std::vector<ValueId> operands = r(node.inputs);
  if (node.op == Op::kScatterElements) operands[1] = without_broadcast(r.source(), r, b, node.inputs[1]);
  ir::Attrs attrs = node.attrs;
  attrs.set("in_place", int64_t{1});
  return b.emit(node.op, std::move(operands), std::move(attrs));
}

std::optional<ValueId> emit_update(Rewriter& r, const Node& node, ValueId data) {
  const Graph& graph = r.source();
  if (element_count(graph.shape(data)) == 0) return std::nullopt;
  ir::Builder b(r.target());
  b.set_origins(r.origins());
  switch (node.op) {
    case Op::kSelect:
      if (const auto selected = find_selection(graph, node, data)) return emit_selection(r, b, *selected, data);
      return std::nullopt;
    case Op::kConcat:
      if (const auto joined = find_joined(graph, node, data)) return emit_joined(r, b, *joined, data);
      return std::nullopt;
    case Op::kTranspose:
      if (const Node* scatter = find_transposed(graph, node, data)) return emit_transposed(r, b, node, *scatter, data);
      return std::nullopt;
    case Op::kScatterElements:
    case Op::kScatterNd:
      if (node.inputs[0] == data) return emit_scatter(r, b, node);
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

Graph update_in_place(const Graph& graph, const PassContext&) {
  std::unordered_map<ValueId, ValueId> parameter_of;  // by the value of an output
  for (const Graph::Port& port : graph.outputs()) {
    if (port.alias == Graph::kNoAlias) continue;
    parameter_of.emplace(port.value, graph.inputs()[static_cast<size_t>(port.alias)].value);
  }
  return Rewriter(graph).run([&](Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    if (node.outputs.size() != 1) return std::nullopt;
    const auto found = parameter_of.find(node.outputs[0]);
    if (found == parameter_of.end()) return std::nullopt;
    const std::optional<ValueId> result = emit_update(r, node, found->second);
    if (!result) return std::nullopt;
    return std::vector<ValueId>{*result};
  });
}

bool is_updated_in_place(const Graph& graph, const Graph::Port& output) {
  if (output.alias == Graph::kNoAlias) return false;
  const Node& node = graph.producer(output.value);
  return ir::is_in_place(node) && node.inputs[0] == graph.inputs()[static_cast<size_t>(output.alias)].value;
}

int32_t input_behind(const Graph& graph, ValueId value) {
  std::vector<ValueId> open{value};
  std::unordered_set<ValueId> seen;
  for (size_t i = 0; i < open.size(); ++i) {
    const Node& node = graph.producer(open[i]);
    if (node.op == Op::kParameter) {
      for (size_t input = 0; input < graph.inputs().size(); ++input) {
        const ValueId parameter = graph.inputs()[input].value;
        if (parameter == open[i] && graph.type(parameter) == graph.type(value)) return static_cast<int32_t>(input);
      }
      continue;
    }
    std::vector<ValueId> next;
    if (node.op == Op::kReshape || node.op == Op::kTranspose || node.op == Op::kSlice ||
        node.op == Op::kScatterElements || node.op == Op::kScatterNd) {
      next = {node.inputs[0]};
    } else if (node.op == Op::kSelect) {
      next = {node.inputs[1], node.inputs[2]};
    } else if (node.op == Op::kConcat) {
      next = node.inputs;
    }
    for (const ValueId v : next) {
      if (seen.insert(v).second) open.push_back(v);
    }
  }
  return Graph::kNoAlias;
}

}  // namespace heddle::passes
