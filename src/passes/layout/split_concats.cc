#include "passes/layout/split_concats.h"

#include <algorithm>

#include "ir/rewrite.h"

namespace heddle::passes {

ir::Graph split_concats(const ir::Graph& graph, const PassContext&) {
  return ir::Rewriter(graph).run([](ir::Rewriter& r, const ir::Node& node) -> std::optional<std::vector<ir::ValueId>> {
    if (node.op != ir::Op::kConcat || node.inputs.size() <= kMostConcatParts) return std::nullopt;
    std::vector<ir::ValueId> parts = r(node.inputs);
    while (parts.size() > 1) {
      std::vector<ir::ValueId> joined;
      for (size_t first = 0; first < parts.size(); first += kMostConcatParts) {
        const size_t end = std::min(parts.size(), first + kMostConcatParts);
        std::vector<ir::ValueId> some(parts.begin() + static_cast<ptrdiff_t>(first),
                                      parts.begin() + static_cast<ptrdiff_t>(end));
        joined.push_back(some.size() == 1 ? some[0] : r.emit(ir::Op::kConcat, std::move(some), node.attrs));
      }
      parts = std::move(joined);
    }
    return parts;
  });
}

}  // namespace heddle::passes
