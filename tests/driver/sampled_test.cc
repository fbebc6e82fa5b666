#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "driver/tune/group_bench.h"

namespace heddle::driver {
namespace {

TEST(SampledTest, TakesAllOfFew) {
  EXPECT_EQ(sampled(3, 61), (std::vector<int64_t>{0, 1, 2}));
}

// Results of a transposed convolution repeat by its stride: each phase has a share of the sample.
TEST(SampledTest, MeetsEveryPhaseAndBothEnds) {
  for (const int64_t count : {62, 180, 4400, 65536, 1 << 20, 999983}) {
    const std::vector<int64_t> places = sampled(count, 61);
    const std::set<int64_t> distinct(places.begin(), places.end());
    EXPECT_EQ(distinct.size(), 61u) << count;
    EXPECT_EQ(*distinct.begin(), 0) << count;
    EXPECT_EQ(*distinct.rbegin(), count - 1) << count;
    for (const int64_t stride : {2, 3, 4, 5}) {
      std::vector<int> phases(static_cast<size_t>(stride));
      for (const int64_t place : places) ++phases[static_cast<size_t>(place % stride)];
      EXPECT_GE(*std::min_element(phases.begin(), phases.end()), 3) << count << " by " << stride;
    }
  }
}

}  // namespace
}  // namespace heddle::driver
