#include "base/dag_walk.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace heddle {
namespace {

// Every node reads the one before it twice.
void two_edges(uint32_t node, const std::function<void(uint32_t)>& next) {
  if (node == 0) return;
  next(node - 1);
  next(node - 1);
}

TEST(DagWalk, VisitsWhatIsSharedOnceHoweverDeep) {
  constexpr uint32_t kDepth = 1'000'000;  // 2^1000000 paths
  std::vector<uint32_t> entered, left;
  DagWalk().run(
      kDepth, [](uint32_t node, const auto& next) { two_edges(node, next); },
      [&](uint32_t node) {
        entered.push_back(node);
        return true;
      },
      [&](uint32_t node) { left.push_back(node); });
  ASSERT_EQ(entered.size(), kDepth + 1);
  ASSERT_EQ(left.size(), kDepth + 1);
  EXPECT_EQ(entered.front(), kDepth);
  EXPECT_EQ(left.front(), 0u);
  EXPECT_EQ(left.back(), kDepth);
}

TEST(DagWalk, GoesFromLeftToRightAndLeavesOutWhatIsRefused) {
  // 6 reads 4 and 5, which read 0 and 1, and 1 and 3.
  const std::vector<std::vector<uint32_t>> operands = {{}, {}, {}, {}, {0, 1}, {1, 3}, {4, 5}};
  std::string order;
  DagWalk walk;
  const auto run = [&](uint32_t root, uint32_t refused) {
    walk.run(
        root,
        [&](uint32_t node, const auto& next) {
          for (const uint32_t operand : operands[node]) next(operand);
        },
        [&](uint32_t node) {
          order += "+" + std::to_string(node);
          return node != refused;
        },
        [&](uint32_t node) { order += "-" + std::to_string(node); });
  };
  run(6, 4);
  EXPECT_EQ(order, "+6+4+5+1-1+3-3-5-6");
  order.clear();
  run(6, 4);
  run(0, 6);
  EXPECT_EQ(order, "+0-0");  // the others were visited before
}

}  // namespace
}  // namespace heddle
