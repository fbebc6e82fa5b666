#include "ir/analysis/sensitivity.h"

#include <cmath>
#include <random>

#include "ir/analysis/tolerance.h"
#include "ir/builder.h"
#include "ir/reference/eval.h"
#include "tests/ir/testing.h"

namespace heddle::ir::testing {
namespace {

Array normal(Shape shape, double mean, uint32_t seed) {
  Array array(DType::kF32, std::move(shape));
  std::mt19937 generator(seed);
  std::normal_distribution<double> distribution(mean, 1);
  for (double& v : array.f()) v = static_cast<float>(distribution(generator));
  return array;
}

// x f32[rows, n] -> variance of each row as E[x^2] - E[x]^2.
Graph variances(int64_t rows, int64_t n) {
  Graph graph;
  Builder g(graph);
  const ValueId x = graph.parameter("x", {DType::kF32, {rows, n}});
  const auto mean = [&](ValueId v) {
    return g.mul(g.reduce("sum", v, {1}, true), g.scalar(DType::kF32, 1.0 / static_cast<double>(n)));
  };
  const ValueId m = mean(x);
  graph.output("v", g.sub(mean(g.mul(x, x)), g.mul(m, m)));
  return graph;
}

// x f32[4, 64] -> two matrix products with a tanh between: nothing cancels.
Graph layers() {
  Graph graph;
  Builder g(graph);
  const ValueId x = graph.parameter("x", {DType::kF32, {4, 64}});
  const ValueId w = graph.parameter("w", {DType::kF32, {64, 64}});
  graph.output("y", g.matmul(g.emit(Op::kTanh, {g.matmul(x, w)}), w));
  return graph;
}

TEST(Sensitivity, CoversWhatCancellationCosts) {
  const Graph graph = variances(8, 300);
  const std::vector<Array> inputs = {normal({8, 300}, 100, 1)};
  const Array expected = evaluate(graph, inputs)[0];
  const Array rounded = evaluate(graph, inputs, {.round = true, .observe = {}})[0];
  const double bound = error_bounds(graph)[graph.outputs()[0].value];
  EXPECT_FALSE(compare(expected, rounded, bound).ok);

  const Sensitivity sensitivity = measure_sensitivity(graph, inputs, 1);
  EXPECT_TRUE(compare(expected, rounded, bound, sensitivity.slack[0]).ok);
  // It is no licence: a mistake of a tenth is found even here.
  for (size_t i = 0; i < rounded.f().size(); ++i) {
    Array wrong = rounded;
    wrong.f()[i] *= 1.2;
    EXPECT_FALSE(compare(expected, wrong, bound, sensitivity.slack[0]).ok) << i;
  }
}

TEST(Sensitivity, AModelThatMagnifiesNothingGainsNothing) {
  const Graph graph = layers();
  const std::vector<Array> inputs = {normal({4, 64}, 0, 2), normal({64, 64}, 0, 3)};
  const Array expected = evaluate(graph, inputs)[0];
  const double bound = error_bounds(graph)[graph.outputs()[0].value];
  const Sensitivity sensitivity = measure_sensitivity(graph, inputs, 2);
  EXPECT_LT(sensitivity.bounds[graph.outputs()[0].value], 5 * bound);
  EXPECT_GT(sensitivity.bounds[graph.outputs()[0].value], 0);

  double square = 0;
  for (const double v : expected.f()) square += v * v;
  const double scale = std::sqrt(square / static_cast<double>(expected.size()));
  for (size_t i = 0; i < expected.f().size(); ++i) {
    Array wrong = expected;
    wrong.f()[i] += 1e-3 * scale;
    EXPECT_FALSE(compare(expected, wrong, bound, sensitivity.slack[0]).ok) << i;
  }
}

// Nearly all elements are -1 or 1, and rounding to 16 bits decides on which side the others are.
TEST(Sensitivity, AFewElementsMayMoveWhereTheTensorStays) {
  constexpr int64_t kCount = 4000;
  Graph graph;
  Builder g(graph);
  const ValueId x = graph.parameter("x", {DType::kF32, {kCount}});
  const ValueId rounded = g.cast(g.cast(x, DType::kBF16), DType::kF32);
  graph.output("y", g.unary(Op::kTanh, g.binary(Op::kMul, g.binary(Op::kSub, rounded, 1.0), 300.0)));
  Array values = normal({kCount}, 0, 6);
  for (double& v : values.f()) v += v < 0 ? 0.9 : 1.1;
  for (size_t i = 0; i < 4; ++i) values.f()[100 * i] = 1 + 0.0013 * static_cast<double>(i);
  const std::vector<Array> inputs = {values};
  const Array expected = evaluate(graph, inputs)[0];
  const Array actual = evaluate(graph, inputs, {.round = true, .observe = {}})[0];
  const double bound = error_bounds(graph)[graph.outputs()[0].value];
  EXPECT_FALSE(compare(expected, actual, bound).ok);
  const Sensitivity sensitivity = measure_sensitivity(graph, inputs, 5);
  EXPECT_TRUE(compare(expected, actual, bound, sensitivity.slack[0]).ok);
  for (size_t i = 1; i < actual.f().size(); i += 100) {
    Array wrong = actual;
    wrong.f()[i] = -wrong.f()[i];
    EXPECT_FALSE(compare(expected, wrong, bound, sensitivity.slack[0]).ok) << i;
  }
}

TEST(Sensitivity, NotANumberAndInfinityForgiveNothing) {
  const Graph graph = layers();
  std::vector<Array> inputs = {normal({4, 64}, 0, 4), normal({64, 64}, 0, 5)};
  inputs[0].f()[0] = std::nan("");
  const Array expected = evaluate(graph, inputs)[0];
  const Sensitivity sensitivity = measure_sensitivity(graph, inputs, 3);
  Array wrong = expected;
  wrong.f()[0] = 0;
  EXPECT_FALSE(compare(expected, wrong, 1e-6, sensitivity.slack[0]).ok);
  wrong = expected;
  wrong.f().back() = std::nan("");
  EXPECT_FALSE(compare(expected, wrong, 1e-6, sensitivity.slack[0]).ok);
}

TEST(Sensitivity, LayoutsOfInputsAreExact) {
  Graph graph;
  Builder g(graph);
  const ValueId x = graph.parameter("x", {DType::kF32, {0, 3}});
  graph.output("y", g.transpose(x, {1, 0}));
  const Sensitivity sensitivity = measure_sensitivity(graph, {Array(DType::kF32, {0, 3})}, 4);
  EXPECT_EQ(sensitivity.bounds[graph.outputs()[0].value], 0);
  EXPECT_TRUE(sensitivity.slack[0].empty());
}

}  // namespace
}  // namespace heddle::ir::testing
