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
    if (!gains(graph, node, constant)) return std::nullopt;
    ir::Ints perm = counting(graph.shape(node.inputs[1]).size());
    std::rotate(perm.begin() + 1, perm.begin() + 2, perm.end());
    ir::Attrs attrs = node.attrs;
    attrs.set("filters", std::string("ohwi"));
    return std::vector{e.emit(Op::kConv, {r(node.inputs[0]), e.transpose(r(node.inputs[1]), perm)}, attrs)};
  });
}

}  // namespace heddle::passes
