#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"

namespace heddle::passes {

// The coarsest common split of two shapes of equal element count. Every dimension of `from` and of `to` is the product
// of consecutive entries of `extents`. A dimension of extent 1 is the product of no entries.
struct Refinement {
  Shape extents;
  std::vector<ir::Ints> from, to;  // for each dimension, its indices into `extents`
};

// Returns nullopt if the shapes have no common split ([6, 4] and [4, 6]) or an extent is 0.
std::optional<Refinement> refine(const Shape& from, const Shape& to);

}  // namespace heddle::passes
