#pragma once

#include <cstdint>
#include <vector>

namespace heddle::runtime {

// A buffer that must exist from step `first` to step `last`, both included.
struct Lifetime {
  int64_t bytes = 0;
  int64_t first = 0, last = 0;
};

struct ArenaLayout {
  std::vector<int64_t> offsets;  // one per lifetime, multiples of kAlignment
  int64_t bytes = 0;
};

// Places buffers so that those that exist at the same time do not overlap: the largest first, each into the tightest
// gap that its neighbours in time leave, in practice within some per cent of the largest sum of bytes that live at
// once. Where very many live at once the smallest lie one behind the other, without a search.
ArenaLayout plan_arena(const std::vector<Lifetime>& lifetimes);

}  // namespace heddle::runtime
