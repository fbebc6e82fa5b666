// Constants that positions say as well (passes/simplify/constant_masks.h).
#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/analysis/row_bound.h"
#include "ir/builder.h"
#include "tests/passes/pass_test_util.h"

namespace heddle::passes {
namespace {

// x + constant, with the constant's elements by position.
ir::Graph added(const Shape& shape, const std::function<double(int64_t)>& element) {
  ir::Graph graph;
  ir::Builder b(graph);
  std::vector<float> values;
  for (int64_t i = 0; i < element_count(shape); ++i) values.push_back(static_cast<float>(element(i)));
  const Tensor constant = Tensor::of<float>(DType::kF32, shape, std::span<const float>(values));
  graph.output("y", b.add(graph.parameter("x", {DType::kF32, shape}), b.constant(constant)));
  return graph;
}

// Whether the pass leaves the large constant; what it makes computes the same.
bool stays_constant(const ir::Graph& before) {
  const ir::Graph after = run_passes(before, std::vector<std::string>{"constant_masks"}, {test_target()});
  expect_same(before, after, 0);
  return std::any_of(after.nodes().begin(), after.nodes().end(), [](const ir::Node& node) {
    return node.op == ir::Op::kConstant && node.attrs.tensor("value").size() > 1;
  });
}

constexpr double kMasked = -10000;

TEST(ConstantMasks, CausalWindowedAndPrefixMasksAreComparisons) {
  const int64_t rows = 67, columns = 131;
  const auto mask = [&](const std::function<bool(int64_t, int64_t)>& sees) {
    return added({1, 1, rows, columns}, [&](int64_t i) { return sees(i / columns, i % columns) ? 0.0 : kMasked; });
  };
  EXPECT_FALSE(stays_constant(mask([](int64_t row, int64_t column) { return column <= row; })));
  EXPECT_FALSE(stays_constant(mask([&](int64_t row, int64_t column) { return column <= row + columns - rows; })));
  EXPECT_FALSE(stays_constant(mask([](int64_t row, int64_t column) { return column <= row && column > row - 9; })));
  EXPECT_FALSE(stays_constant(mask([](int64_t row, int64_t column) { return column < 20 || column <= row; })));
  EXPECT_FALSE(stays_constant(mask([](int64_t row, int64_t column) { return column >= 2 * row; })));
  EXPECT_TRUE(stays_constant(mask([](int64_t row, int64_t column) { return (row + column) % 3 == 0; })));
  EXPECT_TRUE(
      stays_constant(mask([](int64_t row, int64_t column) { return column <= row && (row != 40 || column != 7); })));
}

TEST(ConstantMasks, VectorsThatCountAreIotas) {
  EXPECT_FALSE(stays_constant(added({1, 100}, [](int64_t i) { return static_cast<double>(3 * i - 50); })));
  EXPECT_FALSE(stays_constant(added({96}, [](int64_t i) { return static_cast<double>(i / 8); })));
  EXPECT_FALSE(stays_constant(added({80}, [](int64_t i) { return static_cast<double>(std::min<int64_t>(i, 30)); })));
  EXPECT_TRUE(stays_constant(added({100}, [](int64_t i) { return i + 0.5; })));
  EXPECT_TRUE(stays_constant(added({100}, [](int64_t i) { return static_cast<double>(i * i); })));
  EXPECT_TRUE(stays_constant(added({100}, [](int64_t) { return 1.0; })));
}

TEST(ConstantMasks, MinusZeroIsNoCount) {
  EXPECT_TRUE(stays_constant(added({64}, [](int64_t i) { return i == 0 ? -0.0 : static_cast<double>(i); })));
}

TEST(RowBound, FitsALineBetweenTwoLimitsOnly) {
  const auto fitted = [](const std::vector<int64_t>& values) { return ir::fit_row_bound(values); };
  for (const std::vector<int64_t>& values :
       {std::vector<int64_t>{5}, {2, 2, 2}, {0, 1, 2, 3}, {0, 0, 3, 7, 10, 10}, {9, 6, 3, 1, 1}, {4, 5, 5}}) {
    const auto bound = fitted(values);
    ASSERT_TRUE(bound);
    for (size_t row = 0; row < values.size(); ++row) EXPECT_EQ(bound->at(static_cast<int64_t>(row)), values[row]);
  }
  EXPECT_FALSE(fitted({}));
  EXPECT_FALSE(fitted({0, 1, 0}));
  EXPECT_FALSE(fitted({0, 1, 3, 4, 9, 10}));
}

}  // namespace
}  // namespace heddle::passes
