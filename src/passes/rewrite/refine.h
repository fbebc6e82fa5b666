#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"

namespace heddle::passes {

// The finest common split of two shapes of equal element count: every dimension of `from` and of `to` is the product of
// consecutive extents. Dimensions of extent 1 have no extents.
struct Refinement {
  Shape extents;
  std::vector<ir::Ints> from, to;  // for each dimension, its indices into `extents`
};

// Nothing if the extents do not divide each other ([6, 4] and [4, 6]) or one is 0.
std::optional<Refinement> refine(const Shape& from, const Shape& to);

}  // namespace heddle::passes
