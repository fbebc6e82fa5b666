#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/builder.h"
#include "ir/reference/eval.h"

namespace heddle::ir {
namespace {

Array reals(Shape shape, std::vector<double> values) {
  Array array;
  array.dtype = DType::kF32;
  array.shape = std::move(shape);
  array.data = std::move(values);
  return array;
}

Array run_window(const char* kind, const Array& x, Ints window, Ints strides, Ints low, Ints high, Ints dilations) {
  Graph graph;
  const ValueId p = graph.parameter("x", {x.dtype, x.shape});
  graph.output("y", graph.emit(Op::kWindowReduce, {p},
                               {{"kind", std::string(kind)},
                                {"window", window},
                                {"strides", strides},
                                {"low", low},
                                {"high", high},
                                {"dilations", dilations}}));
  return std::move(evaluate(graph, {x})[0]);
}

TEST(WindowReduce, PoolsOneDimension) {
  const Array x = reals({1, 5}, {1, 5, 2, 4, 3});
  EXPECT_EQ(run_window("max", x, {1, 3}, {1, 2}, {0, 1}, {0, 1}, {1, 1}).f(), (std::vector<double>{5, 5, 4}));
  EXPECT_EQ(run_window("sum", x, {1, 2}, {1, 1}, {0, 0}, {0, 0}, {1, 2}).f(), (std::vector<double>{3, 9, 5}));
  EXPECT_EQ(run_window("prod", x, {1, 2}, {1, 3}, {0, 1}, {0, 0}, {1, 1}).f(), (std::vector<double>{1, 8}));
  EXPECT_EQ(run_window("min", x, {1, 5}, {1, 1}, {0, 0}, {0, 0}, {1, 1}).f(), (std::vector<double>{1}));
}

TEST(WindowReduce, WindowsOverTwoDimensionsAndOnlyPadding) {
  const Array x = reals({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run_window("sum", x, {2, 2}, {1, 1}, {0, 0}, {0, 0}, {1, 1}).f(), (std::vector<double>{12, 16}));
  const Array padded = run_window("max", x, {1, 1}, {1, 1}, {0, 1}, {0, 0}, {1, 1});
  EXPECT_EQ(padded.f()[0], -std::numeric_limits<double>::infinity());
  const Array counts = run_window("sum", x, {1, 1}, {1, 1}, {0, 2}, {0, 1}, {1, 1});
  EXPECT_EQ(counts.f(), (std::vector<double>{0, 0, 1, 2, 3, 0, 0, 0, 4, 5, 6, 0}));
}

TEST(WindowReduce, NanWinsAndIntegersWrap) {
  const Array x = reals({3}, {1, std::nan(""), 2});
  const Array y = run_window("max", x, {2}, {1}, {0}, {0}, {1});
  EXPECT_TRUE(std::isnan(y.f()[0]) && std::isnan(y.f()[1]));
  Array bytes(DType::kU8, {2});
  bytes.i() = {200, 100};
  EXPECT_EQ(run_window("sum", bytes, {2}, {1}, {0}, {0}, {1}).i()[0], 44);
  Array wide(DType::kU64, {2});
  wide.i() = {-1, 5};  // 2^64 - 1
  EXPECT_EQ(run_window("max", wide, {2}, {1}, {0}, {0}, {1}).i()[0], -1);
  EXPECT_EQ(run_window("min", wide, {2}, {1}, {0}, {0}, {1}).i()[0], 5);
}

TEST(WindowReduce, EmptyAndImpossibleWindows) {
  EXPECT_EQ(run_window("sum", reals({0, 4}, {}), {1, 2}, {1, 1}, {0, 0}, {0, 0}, {1, 1}).shape, (Shape{0, 3}));
  EXPECT_THROW(run_window("sum", reals({3}, {1, 2, 3}), {5}, {1}, {0}, {0}, {1}), Error);
  EXPECT_THROW(run_window("mean", reals({3}, {1, 2, 3}), {1}, {1}, {0}, {0}, {1}), Error);
  EXPECT_THROW(run_window("sum", reals({3}, {1, 2, 3}), {1}, {0}, {0}, {0}, {1}), Error);
}

// Doubles a state while it is below a limit; the slices are the states before doubling.
std::shared_ptr<Graph> doubling_body() {
  auto body = std::make_shared<Graph>();
  Builder b(*body);
  body->parameter("iteration", {DType::kI64, {}});
  body->parameter("condition", {DType::kBool, {}});
  const ValueId x = body->parameter("x", {DType::kF32, {2}});
  const ValueId limit = body->parameter("limit", {DType::kF32, {}});
  const ValueId next = b.add(x, x);
  body->output("condition_out", b.binary(Op::kLt, b.reduce("max", next, {0}), limit));
  body->output("x_out", next);
  body->output("slice", x);
  return body;
}

TEST(Loop, StopsByConditionOrCountAndLeavesZeros) {
  for (const int64_t trip : {0, 2, 5}) {
    Graph graph;
    Builder b(graph);
    const ValueId x = graph.parameter("x", {DType::kF32, {2}});
    const auto results = b.emit_all(Op::kLoop,
                                    {b.constant(Tensor::of<int64_t>(DType::kI64, {}, {trip})),
                                     b.scalar(DType::kBool, 1), x, b.scalar(DType::kF32, 10)},
                                    {{"body", std::shared_ptr<const Graph>(doubling_body())},
                                     {"states", int64_t{1}},
                                     {"scans", int64_t{1}},
                                     {"trip", int64_t{5}}});
    graph.output("final", results[0]);
    graph.output("slices", results[1]);
    const auto values = evaluate(graph, {reals({2}, {1, 2})});
    ASSERT_EQ(values[1].shape, (Shape{5, 2}));
    const std::vector<std::vector<double>> finals = {{1, 2}, {4, 8}, {8, 16}};
    EXPECT_EQ(values[0].f(), finals[trip == 0 ? 0 : trip == 2 ? 1 : 2]);
    std::vector<double> slices(10, 0.0);
    for (int64_t i = 0; i < std::min<int64_t>(trip, 3); ++i) {
      slices[2 * i] = static_cast<double>(1 << i);
      slices[2 * i + 1] = static_cast<double>(2 << i);
    }
    EXPECT_EQ(values[1].f(), slices);
  }
}

TEST(Loop, RefusesBodiesThatDoNotFit) {
  Graph graph;
  Builder b(graph);
  const ValueId trip = b.constant(Tensor::of<int64_t>(DType::kI64, {}, {3})), run = b.scalar(DType::kBool, 1);
  const ValueId x = b.scalar(DType::kF32, 1), limit = b.scalar(DType::kF32, 1);
  Attrs attrs{{"body", std::shared_ptr<const Graph>(doubling_body())},
              {"states", int64_t{1}},
              {"scans", int64_t{1}},
              {"trip", int64_t{3}}};
  EXPECT_THROW(graph.add(Op::kLoop, {trip, run, x, limit}, attrs), Error);  // a scalar state, the body has f32[2]
  EXPECT_THROW(graph.add(Op::kLoop, {trip, run}, attrs), Error);
  attrs.set("states", int64_t{9});
  EXPECT_THROW(graph.add(Op::kLoop, {trip, run, x, limit}, attrs), Error);
}

TEST(If, TakesTheBranchOfItsCondition) {
  const auto branch = [](Op op) {
    auto graph = std::make_shared<Graph>();
    const ValueId a = graph->parameter("a", {DType::kF32, {}}), c = graph->parameter("c", {DType::kF32, {}});
    graph->output("y", graph->emit(op, {a, c}));
    return std::shared_ptr<const Graph>(graph);
  };
  Graph graph;
  const ValueId condition = graph.parameter("condition", {DType::kBool, {}});
  const ValueId a = graph.parameter("a", {DType::kF32, {}}), c = graph.parameter("c", {DType::kF32, {}});
  graph.output("y", graph.emit(Op::kIf, {condition, a, c}, {{"then", branch(Op::kAdd)}, {"else", branch(Op::kSub)}}));
  Array yes(DType::kBool, {});
  yes.i()[0] = 1;
  EXPECT_EQ(evaluate(graph, {yes, reals({}, {5}), reals({}, {3})})[0].f()[0], 8);
  EXPECT_EQ(evaluate(graph, {Array(DType::kBool, {}), reals({}, {5}), reals({}, {3})})[0].f()[0], 2);
}

TEST(Call, DeterminantAndUnknownTargets) {
  Graph graph;
  const ValueId x = graph.parameter("x", {DType::kF64, {2, 3, 3}});
  graph.output("det", graph.emit(Op::kCall, {x}, {{"target", "det"}}));
  Array value(DType::kF64, {2, 3, 3});
  value.f() = {0, 2, 1, 3, 0, 4, 1, 1, 0, 1, 2, 3, 2, 4, 6, 7, 8, 9};  // the second is singular
  const Array det = evaluate(graph, {value})[0];
  EXPECT_NEAR(det.f()[0], 11, 1e-12);
  EXPECT_EQ(det.f()[1], 0);
  EXPECT_THROW(graph.emit(Op::kCall, {x}, {{"target", "fourier"}}), Error);
}

TEST(Call, NonMaxSuppressionKeepsTheBestBoxes) {
  Graph graph;
  const ValueId boxes = graph.parameter("boxes", {DType::kF32, {1, 3, 4}});
  const ValueId scores = graph.parameter("scores", {DType::kF32, {1, 1, 3}});
  const auto results = Builder(graph).emit_all(Op::kCall, {boxes, scores},
                                               {{"target", "non_max_suppression"},
                                                {"limit", int64_t{3}},
                                                {"max_per_class", int64_t{3}},
                                                {"center", int64_t{0}},
                                                {"iou_threshold", 0.5},
                                                {"score_threshold", 0.0}});
  graph.output("selected", results[0]);
  graph.output("count", results[1]);
  const auto values = evaluate(
      graph, {reals({1, 3, 4}, {0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 10, 1, 11}), reals({1, 1, 3}, {0.5, 0.9, 0.3})});
  EXPECT_EQ(values[0].i(), (std::vector<int64_t>{0, 0, 1, 0, 0, 2, -1, -1, -1}));
  EXPECT_EQ(values[1].i()[0], 2);
}

}  // namespace
}  // namespace heddle::ir
