#include "runtime/arena.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "runtime/plan.h"

namespace heddle::runtime {
namespace {

struct Range {
  int64_t begin, end;
};

// The start of the smallest gap of at least `bytes` between the sorted, perhaps overlapping `taken` ranges; the end of
// the last one when no gap fits.
int64_t tightest_gap(const std::vector<Range>& taken, int64_t bytes) {
  int64_t best = -1, best_size = std::numeric_limits<int64_t>::max(), end = 0;
  for (const Range& range : taken) {
    const int64_t gap = range.begin - end;
    if (gap >= bytes && gap < best_size) {
      best = end;
      best_size = gap;
    }
    end = std::max(end, range.end);
  }
  return best >= 0 ? best : end;
}

}  // namespace

ArenaLayout plan_arena(const std::vector<Lifetime>& lifetimes) {
  ArenaLayout layout;
  layout.offsets.resize(lifetimes.size());
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  std::vector<Range> taken;
  for (size_t placed = 0; placed < order.size(); ++placed) {
    const Lifetime& lifetime = lifetimes[order[placed]];
    taken.clear();
    for (size_t i = 0; i < placed; ++i) {
      const Lifetime& other = lifetimes[order[i]];
      if (other.last < lifetime.first || lifetime.last < other.first) continue;
      const int64_t begin = layout.offsets[order[i]];
      taken.push_back({begin, begin + aligned(other.bytes)});
    }
    std::sort(taken.begin(), taken.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    const int64_t offset = tightest_gap(taken, aligned(lifetime.bytes));
    layout.offsets[order[placed]] = offset;
    layout.bytes = std::max(layout.bytes, offset + aligned(lifetime.bytes));
  }
  return layout;
}

}  // namespace heddle::runtime
