#include "passes/layout/filters_last.h"

#include <algorithm>

#include "passes/rewrite/emitter.h"

namespace heddle::passes {
namespace {

using ir::Node;
using ir::Op;

// By value: true if it depends on constants only, so that folding makes it one.
std::vector<bool> constant_values(const ir::Graph& graph) {
  std::vector<bool> constant(graph.value_count());
  for (const Node& node : graph.nodes()) {
    const bool all = node.op != Op::kParameter && !ir::is_anchor(node.op) &&
                     std::all_of(node.inputs.begin(), node.inputs.end(), [&](ir::ValueId v) { return constant[v]; });
    for (const ir::ValueId v : node.outputs) constant[v] = all;
  }
  return constant;
}

// Whether a convolution is a product of its pixels with a matrix that is computed as the transpose of another one, as
// the gradient of the image of 1x1 filters is.
bool is_turned_product(const ir::Graph& graph, const Node& conv, const std::vector<bool>& constant) {
  if (conv.op != Op::kConv || conv.attrs.text("layout") != "nhwc" || conv.attrs.has("filters")) return false;
  const Node& w = graph.producer(conv.inputs[1]);
  if (w.op != Op::kTranspose || constant[conv.inputs[1]] || conv.attrs.integer("groups") != 1) return false;
  const auto all = [&](const char* name, int64_t value) {
    const ir::Ints& list = conv.attrs.ints(name);
    return std::all_of(list.begin(), list.end(), [&](int64_t one) { return one == value; });
  };
  const Shape& shape = graph.shape(conv.inputs[1]);
  const ir::Ints& perm = w.attrs.ints("perm");
  return perm[0] > perm[1] && std::all_of(shape.begin() + 2, shape.end(), [](int64_t taps) { return taps == 1; }) &&
         all("strides", 1) && all("low", 0) && all("high", 0) && all("lhs_dilations", 1);
}

// The product, which reads the matrix as it lies.
ir::ValueId emit_product(ir::Rewriter& r, Emitter& e, const Node& conv) {
  const ir::ValueId image = r(conv.inputs[0]);
  const Shape& w = r.source().shape(conv.inputs[1]);
  const ir::ValueId matrix = e.reshape(r(r.source().producer(conv.inputs[1]).inputs[0]), {w[1], w[0]});
  ir::Attrs attrs = {{"lhs_batch", ir::Ints{}},
                     {"rhs_batch", ir::Ints{}},
                     {"lhs_contract", ir::Ints{static_cast<int64_t>(e.shape(image).size()) - 1}},
                     {"rhs_contract", ir::Ints{0}}};
  if (conv.attrs.has("out")) attrs.set("out", conv.attrs.dtype("out"));
  if (conv.attrs.has("tf32")) attrs.set("tf32", conv.attrs.integer("tf32"));
  return e.emit(Op::kDot, {image, matrix}, std::move(attrs));
}

bool gains(const ir::Graph& graph, const Node& conv, const std::vector<bool>& constant) {
  if (conv.op != Op::kConv || conv.attrs.text("layout") != "nhwc" || conv.attrs.has("filters")) return false;
  const Shape& w = graph.shape(conv.inputs[1]);
  const bool has_taps = std::any_of(w.begin() + 2, w.end(), [](int64_t extent) { return extent > 1; });
  return has_taps && w[1] > 1 && !constant[conv.inputs[1]];
}

}  // namespace

ir::Graph filters_last(const ir::Graph& graph, const PassContext&) {
  ir::Rewriter rewriter(graph);
  Emitter e(rewriter, canonical_rules());
  const std::vector<bool> constant = constant_values(graph);
  return rewriter.run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ir::ValueId>> {
    if (is_turned_product(graph, node, constant)) return std::vector{emit_product(r, e, node)};
    if (!gains(graph, node, constant)) return std::nullopt;
    ir::Ints perm = counting(graph.shape(node.inputs[1]).size());
    std::rotate(perm.begin() + 1, perm.begin() + 2, perm.end());
    ir::Attrs attrs = node.attrs;
    attrs.set("filters", std::string("ohwi"));
    return std::vector{e.emit(Op::kConv, {r(node.inputs[0]), e.transpose(r(node.inputs[1]), perm)}, attrs)};
  });
}

}  // namespace heddle::passes
