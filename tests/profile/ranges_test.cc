// Ranges of NVTX that a thread is in.
#include "profile/program/nvtx/ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace heddle::profile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const Range& range : ranges_of_thread()) result.push_back(range_name(range.name));
  return result;
}

TEST(Ranges, EachDomainAndEachThreadHasItsOwn) {
  int one = 0, other = 0;
  EXPECT_EQ(pop_range(&one), -1);
  EXPECT_EQ(push_range("alone", &other), 0);
  const uint64_t alone = ranges_of_thread().back().path;
  EXPECT_EQ(pop_range(&other), 0);
  EXPECT_EQ(push_range("outer", &one), 0);
  EXPECT_EQ(push_range("alone", &other), 1);
  EXPECT_NE(ranges_of_thread().back().path, alone);
  std::thread([] { EXPECT_THAT(names(), IsEmpty()); }).join();
  EXPECT_EQ(pop_range(&one), 1);  // what is within it stays, and is where it would be without it
  EXPECT_THAT(names(), ElementsAre("alone"));
  EXPECT_EQ(ranges_of_thread().back().path, alone);
  EXPECT_EQ(pop_range(&other), 0);
}

TEST(Ranges, NamesOfManyNumbersAreOne) {
  for (int i = 0; i < 100; ++i) {
    push_range("epoch 3, batch " + std::to_string(i));
    EXPECT_THAT(names(), ElementsAre(i < 32 ? "epoch 3, batch " + std::to_string(i) : "epoch #, batch #"));
    pop_range();
  }
}

TEST(Ranges, OperatorsHaveTheirNumbers) {
  push_range("autograd::engine::evaluate_function: MmBackward0, op_id = 2");
  EXPECT_EQ(ranges_of_thread()[0].sequence, -1);
  push_range("MmBackward0, seq = 12, op_id = 3");
  EXPECT_TRUE(ranges_of_thread()[1].is_operator);
  EXPECT_EQ(ranges_of_thread()[1].sequence, 12);
  pop_range();
  EXPECT_EQ(ranges_of_thread()[0].sequence, 12);
  pop_range();
  push_range("a step, seq");
  EXPECT_FALSE(ranges_of_thread()[0].is_operator);
  EXPECT_EQ(ranges_of_thread()[0].sequence, -1);
  pop_range();
}

}  // namespace
}  // namespace heddle::profile
