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

// Placed buffers by the steps of their lives: what lives together with another is found without looking at the rest.
class PlacedBuffers {
 public:
  explicit PlacedBuffers(const std::vector<Lifetime>& lifetimes) : lifetimes_(lifetimes) {
    for (const Lifetime& lifetime : lifetimes) last_ = std::max(last_, lifetime.last);
    while (leaves_ <= static_cast<size_t>(last_)) leaves_ *= 2;
    begins_.resize(leaves_);
    covers_.resize(2 * leaves_);
  }

  void add(size_t index) {
    const Lifetime& lifetime = lifetimes_[index];
    begins_[static_cast<size_t>(lifetime.first)].push_back(index);
    // The steps of a life as few nodes of a binary tree over all steps.
    auto low = static_cast<size_t>(lifetime.first) + leaves_, high = static_cast<size_t>(lifetime.last) + leaves_ + 1;
    for (; low < high; low /= 2, high /= 2) {
      if (low % 2 != 0) covers_[low++].push_back(index);
      if (high % 2 != 0) covers_[--high].push_back(index);
    }
  }

  // Calls `found` for each buffer that lives in a step of this life.
  template <typename Found>
  void beside(const Lifetime& lifetime, const Found& found) const {
    // Those that live in its first step, and those that begin later.
    for (size_t node = static_cast<size_t>(lifetime.first) + leaves_; node > 0; node /= 2) {
      std::for_each(covers_[node].begin(), covers_[node].end(), found);
    }
    for (int64_t step = lifetime.first + 1; step <= lifetime.last; ++step) {
      const auto& begins = begins_[static_cast<size_t>(step)];
      std::for_each(begins.begin(), begins.end(), found);
    }
  }

 private:
  const std::vector<Lifetime>& lifetimes_;
  int64_t last_ = 0;
  size_t leaves_ = 1;
  std::vector<std::vector<size_t>> begins_;  // by step
  std::vector<std::vector<size_t>> covers_;  // by node of the tree
};

}  // namespace

ArenaLayout plan_arena(const std::vector<Lifetime>& lifetimes) {
  // Buffers that are compared with each other. Beyond that, what is left over (the smallest) lies one behind the other.
  constexpr size_t kMostLooks = size_t{1} << 26;
  ArenaLayout layout;
  layout.offsets.resize(lifetimes.size());
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  PlacedBuffers placed(lifetimes);
  std::vector<Range> taken;
  size_t looks = 0;
  for (const size_t index : order) {
    const Lifetime& lifetime = lifetimes[index];
    int64_t offset = layout.bytes;
    if (looks < kMostLooks) {
      taken.clear();
      placed.beside(lifetime, [&](size_t other) {
        taken.push_back({layout.offsets[other], layout.offsets[other] + aligned(lifetimes[other].bytes)});
      });
      looks += taken.size() + static_cast<size_t>(lifetime.last - lifetime.first);
      std::sort(taken.begin(), taken.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
      offset = tightest_gap(taken, aligned(lifetime.bytes));
      placed.add(index);
    }
    layout.offsets[index] = offset;
    layout.bytes = std::max(layout.bytes, offset + aligned(lifetime.bytes));
  }
  return layout;
}

}  // namespace heddle::runtime
