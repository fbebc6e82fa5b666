#include "passes/rewrite/refine.h"

#include <algorithm>

namespace heddle::passes {

std::optional<Refinement> refine(const Shape& from, const Shape& to) {
  Refinement result{{}, std::vector<ir::Ints>(from.size()), std::vector<ir::Ints>(to.size())};
  size_t i = 0, j = 0;
  int64_t left = 1, right = 1;  // what is not yet split of the current dimensions
  for (;;) {
    while (left == 1 && i < from.size()) left = from[i++];
    while (right == 1 && j < to.size()) right = to[j++];
    if (left == 1 && right == 1) return result;
    const int64_t extent = std::min(left, right);
    if (extent <= 1 || left % extent != 0 || right % extent != 0) return std::nullopt;
    const auto index = static_cast<int64_t>(result.extents.size());
    result.extents.push_back(extent);
    result.from[i - 1].push_back(index);
    result.to[j - 1].push_back(index);
    left /= extent;
    right /= extent;
  }
}

}  // namespace heddle::passes
