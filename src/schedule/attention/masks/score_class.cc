#include "schedule/attention/masks/score_class.h"

#include <algorithm>
#include <cmath>

namespace heddle::schedule {

std::optional<double> ScoreClasses::plain_factor() {
  const int64_t row = d_.m - 1, key = d_.n - 1;
  const std::pair<int64_t, int64_t> points[] = {
      {row, 0}, {0, 0}, {row, key}, {row / 2, key / 2}, {row, std::min(row, key)}, {0, key}, {row, key / 2}};
  for (const auto& [r, k] : points) {
    const Bounds b = bounds_.at({{r, r}, {k, k}});
    if (b.is_known && b.factor > 0 && b.lo == 0 && b.hi == 0 && std::isfinite(b.factor)) return b.factor;
  }
  return std::nullopt;
}

ScoreClass ScoreClasses::at(const Box& box) {
  const Bounds b = bounds_.at(box);
  if (!b.is_known) return ScoreClass::kMixed;
  if (b.hi == -kInfinity) return ScoreClass::kNone;
  if (!plain_) return ScoreClass::kMixed;
  if (b.factor == *plain_ && b.lo == 0 && b.hi == 0) return ScoreClass::kPlain;
  // Plain scores count as at most this: masks of -10000 are far below all of them. exp(-110) is zero in f32.
  constexpr double kMostScore = 4096, kZero = 110;
  const bool is_far = b.hi + b.factor / *plain_ * kMostScore <= -kMostScore - kZero;
  return is_far ? ScoreClass::kNegligible : ScoreClass::kMixed;
}

}  // namespace heddle::schedule
