#include "ir/analysis/filter_gradient.h"

#include <algorithm>

namespace heddle::ir {
namespace {

// A factor of a dimension's index: index / step % extent of dimension `dim` of a source.
struct Digit {
  size_t dim;
  int64_t extent, step;
  bool operator==(const Digit&) const = default;
};
// The dimensions of a value, each as its digits, outermost first.
using Digits = std::vector<std::vector<Digit>>;

Digits digits_of(const Shape& shape) {
  Digits result(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1) result[d] = {{d, shape[d], 1}};
  }
  return result;
}

// Takes digits with a product of `extent` from the front of `all`, of which the last may be divided.
bool take(std::vector<Digit>& all, int64_t extent, std::vector<Digit>& result) {
  while (extent > 1) {
    if (all.empty()) return false;
    Digit& next = all.front();
    if (extent % next.extent == 0) {
      extent /= next.extent;
      result.push_back(next);
      all.erase(all.begin());
    } else if (next.extent % extent == 0) {
      next.extent /= extent;
      result.push_back({next.dim, extent, next.step * next.extent});
      extent = 1;
    } else {
      return false;
    }
  }
  return true;
}

std::optional<Digits> apply(const Digits& digits, const Node& view, const Shape& result) {
  Digits changed;
  if (view.op == Op::kTranspose) {
    for (const int64_t d : view.attrs.ints("perm")) changed.push_back(digits[static_cast<size_t>(d)]);
    return changed;
  }
  std::vector<Digit> all;
  for (const auto& dim : digits) all.insert(all.end(), dim.begin(), dim.end());
  for (const int64_t extent : result) {
    changed.emplace_back();
    if (!take(all, extent, changed.back())) return std::nullopt;
  }
  return changed;
}

// Joins neighbouring digits that are one digit of the source.
Digits joined(Digits digits) {
  for (auto& dim : digits) {
    for (size_t i = 1; i < dim.size();) {
      Digit& before = dim[i - 1];
      if (before.dim == dim[i].dim && before.step == dim[i].step * dim[i].extent) {
        before = {before.dim, before.extent * dim[i].extent, dim[i].step};
        dim.erase(dim.begin() + static_cast<int64_t>(i));
      } else {
        ++i;
      }
    }
  }
  return digits;
}

struct Source {
  ValueId value;
  std::vector<NodeId> views;
};

// The value above an operand whose layout changes make of it what `wanted` says for its shape.
template <typename Wanted>
std::optional<Source> source_of(const Graph& graph, ValueId operand, NodeId reader,
                                const std::function<bool(NodeId, NodeId)>& may_view, const Wanted& wanted) {
  constexpr size_t kLongest = 8;  // canonical graphs have at most four
  std::vector<NodeId> chain;
  for (ValueId at = operand; chain.size() < kLongest;) {
    const NodeId view = graph.value(at).producer;
    const Op op = graph.node(view).op;
    if ((op != Op::kTranspose && op != Op::kReshape) || !may_view(view, reader)) break;
    chain.push_back(reader = view);
    at = graph.node(view).inputs[0];
    const Shape& shape = graph.shape(at);
    const std::optional<Digits> expected = wanted(shape);
    std::optional<Digits> digits = digits_of(shape);
    for (size_t i = chain.size(); i-- > 0 && digits;) {
      const Node& node = graph.node(chain[i]);
      digits = apply(*digits, node, graph.shape(node.outputs[0]));
    }
    if (expected && digits && joined(*digits) == joined(*expected)) return Source{at, chain};
  }
  return std::nullopt;
}

std::vector<Digit> digit(size_t dim, int64_t extent, int64_t step = 1) {
  if (extent == 1) return {};
  return {{dim, extent, step}};
}

}  // namespace

std::optional<FilterGradient> filter_gradient(const Graph& graph, NodeId conv,
                                              const std::function<bool(NodeId, NodeId)>& may_view) {
  const Node& node = graph.node(conv);
  if (node.op != Op::kConv || node.attrs.text("layout") != "nhwc" || node.inputs[0] == node.inputs[1]) return {};
  const Ints& spread = node.attrs.ints("lhs_dilations");
  if (std::any_of(spread.begin(), spread.end(), [](int64_t s) { return s != 1; })) return {};
  const Shape &x = graph.shape(node.inputs[0]), &w = graph.shape(node.inputs[1]);
  const size_t rank = x.size(), channel = rank - 1;
  const bool last = node.attrs.has("filters") && node.attrs.text("filters") == "ohwi";
  const int64_t groups = node.attrs.integer("groups"), images = last ? w.back() : w[1];
  if (images == 0 || groups == 0) return {};

  // [channel of a group, spatial..., (group, image)]
  const auto image = source_of(graph, node.inputs[0], conv, may_view, [&](const Shape& s) -> std::optional<Digits> {
    if (s.size() != rank || s[0] != images || s.back() != groups * x[0]) return std::nullopt;
    Digits wanted = digits_of(s);
    wanted.front() = digit(channel, x[0]);
    wanted.back() = digit(channel, groups, x[0]);
    if (images > 1) wanted.back().push_back({0, images, 1});
    return wanted;
  });
  // [output channel, image, spatial...], or with the image last
  const auto gradient = source_of(graph, node.inputs[1], conv, may_view, [&](const Shape& s) -> std::optional<Digits> {
    if (s.size() != rank || s[0] != images || s.back() != w[0]) return std::nullopt;
    Digits wanted = digits_of(s);
    std::rotate(wanted.begin(), wanted.end() - 1, wanted.end());
    if (last) std::rotate(wanted.begin() + 1, wanted.begin() + 2, wanted.end());
    return wanted;
  });
  if (!image || !gradient) return {};
  FilterGradient found{image->value, gradient->value, groups, image->views};
  found.views.insert(found.views.end(), gradient->views.begin(), gradient->views.end());
  return found;
}

}  // namespace heddle::ir
