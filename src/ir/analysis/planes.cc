#include "ir/analysis/planes.h"

#include <algorithm>

namespace heddle::ir {

bool filters_planes(const Graph& graph, const Node& conv) {
  constexpr size_t kMostRank = 4;
  const Shape& w = graph.shape(conv.inputs[1]);
  const Ints& spread = conv.attrs.ints("lhs_dilations");
  return w.size() <= kMostRank && w[0] == conv.attrs.integer("groups") && w[1] == 1 &&
         std::all_of(spread.begin(), spread.end(), [](int64_t s) { return s == 1; });
}

}  // namespace heddle::ir
