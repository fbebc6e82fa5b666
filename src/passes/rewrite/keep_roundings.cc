#include "passes/rewrite/keep_roundings.h"

#include "ir/analysis/decisions.h"
#include "ir/rewrite.h"

namespace heddle::passes {

ir::Graph keep_roundings(const ir::Graph& graph, const PassContext&) {
  const std::vector<bool> feeds = ir::feed_decisions(graph);
  return ir::Rewriter(graph).run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    if (!feeds[node.outputs[0]]) return std::nullopt;
    ir::Attrs attrs = node.attrs;
    if (node.op == Op::kMul || node.op == Op::kDiv) {
      attrs.set("rounded", int64_t{1});
    } else if (node.op == Op::kCast && attrs.has("excess_precision")) {
      attrs.set("excess_precision", int64_t{0});
    } else {
      return std::nullopt;
    }
    return std::vector{r.emit(node.op, r(node.inputs), std::move(attrs))};
  });
}

}  // namespace heddle::passes
