#include "passes/layout/filters_last.h"

#include <algorithm>
#include <map>

#include "passes/rewrite/emitter.h"

namespace heddle::passes {
namespace {

using ir::Node;
using ir::Op;

// Which values folding turns into constants.
class Constants {
 public:
  explicit Constants(const ir::Graph& graph) : graph_(graph) {}

  bool has(ir::ValueId v) {
    if (const auto found = known_.find(v); found != known_.end()) return found->second;
    const Node& node = graph_.producer(v);
    const bool is_source = node.op == Op::kParameter || ir::is_anchor(node.op);
    const bool all =
        !is_source && std::all_of(node.inputs.begin(), node.inputs.end(), [&](ir::ValueId in) { return has(in); });
    return known_[v] = all;
  }

 private:
  const ir::Graph& graph_;
  std::map<ir::ValueId, bool> known_;
};

bool gains(const ir::Graph& graph, const Node& conv, Constants& constants) {
  if (conv.op != Op::kConv || conv.attrs.text("layout") != "nhwc" || conv.attrs.has("filters")) return false;
  const Shape& w = graph.shape(conv.inputs[1]);
  const bool has_taps = std::any_of(w.begin() + 2, w.end(), [](int64_t extent) { return extent > 1; });
  return has_taps && w[1] > 1 && !constants.has(conv.inputs[1]);
}

}  // namespace

ir::Graph filters_last(const ir::Graph& graph, const PassContext&) {
  ir::Rewriter rewriter(graph);
  Emitter e(rewriter, canonical_rules());
  Constants constants(graph);
  return rewriter.run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ir::ValueId>> {
    if (!gains(graph, node, constants)) return std::nullopt;
    ir::Ints perm = counting(graph.shape(node.inputs[1]).size());
    std::rotate(perm.begin() + 1, perm.begin() + 2, perm.end());
    ir::Attrs attrs = node.attrs;
    attrs.set("filters", std::string("ohwi"));
    return std::vector{e.emit(Op::kConv, {r(node.inputs[0]), e.transpose(r(node.inputs[1]), perm)}, attrs)};
  });
}

}  // namespace heddle::passes
