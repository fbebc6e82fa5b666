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

// Assigns offsets so that buffers with overlapping lifetimes do not overlap in memory. Places the largest first, each
// into the tightest gap between buffers of overlapping lifetimes. In practice the result is within a few per cent of
// the largest number of bytes alive at once. If very many are alive at once, the smallest are placed one after the
// other without a search.
ArenaLayout plan_arena(const std::vector<Lifetime>& lifetimes);

}  // namespace heddle::runtime
