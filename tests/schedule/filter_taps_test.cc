#include "schedule/product/filter_taps.h"

#include <gtest/gtest.h>

namespace heddle::schedule {
namespace {

// Filters of ones [groups * channels * phases, c, 2, 3]; those of phase 0 are zero in column 0 of the window.
Tensor filters(int64_t groups, int64_t channels, int64_t phases, int64_t c) {
  Tensor w = Tensor(DType::kF32, {groups * channels * phases, c, 2, 3});
  const auto values = w.mutable_values<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (at / (c * 6) % phases != 0 || at % 3 != 0) values[i] = 1;
  }
  return w;
}

tile::ConvShape shape(int64_t groups, int64_t o, int64_t c) {
  tile::ConvShape s;
  s.groups = groups, s.o = o, s.c = c;
  s.kernel[1] = 2, s.kernel[2] = 3;
  return s;
}

TEST(FilterTaps, PanelsOfOnePhaseLeaveOutWhatItDoesNotHave) {
  for (const int64_t groups : {1, 2}) {
    const Tensor w = filters(groups, 10, 2, 3);
    tile::ConvShape s = shape(groups, 20, 3);
    EXPECT_EQ(tap_count(panel_taps(w, s, 8)), groups * 3 * 6) << "each panel has columns of both phases";
    s.phases = 2;
    const std::vector<tile::ConvTaps> taps = panel_taps(w, s, 8);
    ASSERT_EQ(taps.size(), static_cast<size_t>(groups * 4));
    EXPECT_EQ(tap_count(taps), groups * 2 * (4 + 6));
    EXPECT_EQ(taps[0].first[2], 1);
    EXPECT_EQ(taps[1].first[2], 0);
    EXPECT_EQ(taps[0].end[2], 3);
  }
}

TEST(FilterTaps, OneValueKeepsATapAndZerosAreAnEmptyBox) {
  Tensor w = Tensor(DType::kF32, {16, 4, 2, 3});
  EXPECT_EQ(tap_count(panel_taps(w, shape(1, 16, 4), 8)), 0);
  w.mutable_values<float>()[static_cast<size_t>((15 * 4 + 3) * 6 + 5)] = 1;
  const std::vector<tile::ConvTaps> taps = panel_taps(w, shape(1, 16, 4), 8);
  EXPECT_EQ(tap_count({taps[0]}), 0);
  EXPECT_EQ(tap_count({taps[1]}), 1);
  EXPECT_EQ(taps[1].first[1], 1);
  EXPECT_EQ(taps[1].first[2], 2);
}

}  // namespace
}  // namespace heddle::schedule
