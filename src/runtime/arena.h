#pragma once

#include <cstdint>
#include <vector>

namespace heddle::runtime {

// A buffer that must exist from step `first` to step `last`, inclusive.
struct Lifetime {
  int64_t bytes = 0;
  int64_t first = 0, last = 0;
};

struct ArenaLayout {
  std::vector<int64_t> offsets;  // one per lifetime; each is a multiple of kAlignment
  int64_t bytes = 0;
};

// Assigns offsets so that buffers with overlapping lifetimes do not overlap in memory. Places the largest buffer first,
// and each buffer into the smallest sufficient gap between buffers with overlapping lifetimes. In practice the total is
// within a few per cent of the largest number of bytes alive at once. If very many buffers are alive at once, the
// smallest ones are placed one after another without a search.
ArenaLayout plan_arena(const std::vector<Lifetime>& lifetimes);

}  // namespace heddle::runtime
