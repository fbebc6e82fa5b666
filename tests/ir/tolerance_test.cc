#include "ir/analysis/tolerance.h"

#include <cmath>
#include <limits>

#include "ir/builder.h"
#include "tests/ir/testing.h"

namespace heddle::ir::testing {
namespace {

TEST(ErrorBounds, ExactWhereNothingRounds) {
  Graph graph;
  Builder g(graph);
  const ValueId x = graph.parameter("x", {DType::kF32, {4, 8}});
  const ValueId i = graph.parameter("i", {DType::kI32, {4, 8}});
  for (ValueId v : {g.transpose(x, {1, 0}), g.max(x, x), g.reduce("max", x, {1}), g.mul(i, i), g.reduce("sum", i, {0}),
                    g.emit(Op::kLt, {x, x})}) {
    EXPECT_EQ(error_bounds(graph)[v], 0) << to_string(graph.producer(v).op);
  }
}

TEST(ErrorBounds, GrowWithTermsDepthAndNarrowTypes) {
  const auto dot_bound = [](DType dtype, int64_t depth, int layers) {
    Graph graph;
    Builder g(graph);
    ValueId v = graph.parameter("x", {dtype, {depth, depth}});
    const ValueId w = graph.parameter("w", {dtype, {depth, depth}});
    for (int i = 0; i < layers; ++i) v = g.matmul(v, w);
    return error_bounds(graph)[v];
  };
  EXPECT_NEAR(dot_bound(DType::kF32, 1023, 1), kSafety * 32 * 0x1p-24, 1e-9);
  EXPECT_NEAR(dot_bound(DType::kF32, 1023, 4), 2 * dot_bound(DType::kF32, 1023, 1), 1e-9);
  EXPECT_LT(dot_bound(DType::kF64, 1023, 1), 1e-12);
  EXPECT_GT(dot_bound(DType::kF16, 8, 1), kSafety * 0x1p-11);
  EXPECT_GT(dot_bound(DType::kBF16, 8, 1), dot_bound(DType::kF16, 8, 1));
}

TEST(Compare, RelativeToTheTensorsScale) {
  const Array expected = reals({4}, {0, 3, -4, 0}, DType::kF32);  // rms 2.5
  Comparison c = compare(expected, reals({4}, {0.25, 3, -4, 0}, DType::kF32), 0.2);
  EXPECT_TRUE(c.ok);
  EXPECT_DOUBLE_EQ(c.error, 0.1);
  EXPECT_EQ(c.worst, 0);
  c = compare(expected, reals({4}, {0, 3, -5, 0}, DType::kF32), 0.2);
  EXPECT_FALSE(c.ok);
  EXPECT_DOUBLE_EQ(c.error, 0.25);
  EXPECT_EQ(c.expected, -4);
  EXPECT_EQ(c.actual, -5);
  EXPECT_TRUE(compare(expected, expected, 0).ok);
  EXPECT_FALSE(compare(reals({1}, {0}), reals({1}, {1e-30}), 0).ok);
}

TEST(Compare, NonFinite) {
  EXPECT_TRUE(compare(reals({3}, {kNan, kInf, 1}), reals({3}, {kNan, kInf, 1}), 0).ok);
  for (double bad : {kNan, kInf, -kInf}) {
    EXPECT_FALSE(compare(reals({1}, {1}), reals({1}, {bad}), 1e9).ok) << bad;
    EXPECT_FALSE(compare(reals({1}, {bad}), reals({1}, {1}), 1e9).ok) << bad;
  }
  EXPECT_FALSE(compare(reals({1}, {kInf}), reals({1}, {-kInf}), 1e9).ok);
  EXPECT_TRUE(compare(reals({1}, {70000}, DType::kF16), reals({1}, {kInf}, DType::kF16), 1e-3).ok);
  EXPECT_FALSE(compare(reals({1}, {60000}, DType::kF16), reals({1}, {kInf}, DType::kF16), 1e-3).ok);
}

TEST(Compare, IntegersAreExactUnlessRoundingCanFlipThem) {
  Array expected(DType::kI64, {100}), actual(DType::kI64, {100});
  actual.i()[7] = 5;
  EXPECT_FALSE(compare(expected, actual, 0).ok);
  EXPECT_TRUE(compare(expected, actual, 1e-6).ok);
  EXPECT_EQ(compare(expected, actual, 1e-6).worst, 7);
  actual.i()[8] = actual.i()[9] = 1;
  EXPECT_FALSE(compare(expected, actual, 1e-6).ok);
}

TEST(Compare, SlackForgives) {
  const Array expected = reals({2}, {1, 1}), actual = reals({2}, {1.5, 7});
  EXPECT_FALSE(compare(expected, actual, 0.1, std::vector<double>{0.5, 0}).ok);
  EXPECT_TRUE(compare(expected, actual, 0.1, std::vector<double>{0.5, kInf}).ok);
}

}  // namespace
}  // namespace heddle::ir::testing
