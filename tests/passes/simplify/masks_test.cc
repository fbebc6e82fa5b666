// Masks become comparisons of positions, one for each attention that reads them.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "ir/analysis/row_bound.h"
#include "ir/builder.h"
#include "ir/reference/eval.h"
#include "ir/verify.h"
#include "passes/pass.h"

namespace heddle::passes {
namespace {

using ir::Op;
using ir::ValueId;

constexpr int64_t kMaskRows = 70, kMaskColumns = 90;

// x plus a constant whose elements are 0 where `seen`, else -1.
ir::Graph constant_mask_graph(const std::function<bool(int64_t row, int64_t column)>& seen) {
  std::vector<float> values;
  for (int64_t i = 0; i < kMaskRows * kMaskColumns; ++i) {
    values.push_back(seen(i / kMaskColumns, i % kMaskColumns) ? 0.f : -1.f);
  }
  const Shape shape{1, kMaskRows, kMaskColumns};
  ir::Graph graph;
  ir::Builder b(graph);
  const ValueId x = graph.parameter("x", {DType::kF32, shape});
  const ValueId mask = b.constant(Tensor::of<float>(DType::kF32, shape, std::span<const float>(values)));
  graph.output("y", b.add(x, mask));
  return graph;
}

ir::Array zero_array() {
  const std::vector<float> zeros(kMaskRows * kMaskColumns);
  return ir::to_array(Tensor::of<float>(DType::kF32, {1, kMaskRows, kMaskColumns}, std::span<const float>(zeros)));
}

int64_t count_of(const ir::Graph& graph, Op op) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(), [&](const ir::Node& n) { return n.op == op; });
}

ir::Graph after(const ir::Graph& graph, const std::string& pass) {
  return run_passes(graph, std::vector{pass}, PassContext{Target::cuda_h200()});
}

TEST(ConstantMasks, SpansBetweenLinesAreComparisonsOfTheSameValues) {
  const std::function<bool(int64_t, int64_t)> masks[] = {
      [](int64_t row, int64_t column) { return column <= row; },
      [](int64_t row, int64_t column) { return column > row; },
      [](int64_t row, int64_t column) { return column <= row - 11; },
      [](int64_t row, int64_t column) { return column <= row && row - column < 7; },
      [](int64_t row, int64_t column) { return column <= row || column < 20; },
      [](int64_t row, int64_t column) { return column >= 89 - 2 * row; },
      [](int64_t, int64_t column) { return column < 31; }};
  for (const auto& seen : masks) {
    const ir::Graph graph = constant_mask_graph(seen), changed = after(graph, "constant_masks");
    ASSERT_GT(count_of(changed, Op::kIota), 0);
    const ir::Array zeros = zero_array();
    EXPECT_EQ(ir::evaluate(changed, {zeros})[0].f(), ir::evaluate(graph, {zeros})[0].f());
  }
}

TEST(ConstantMasks, OthersStay) {
  const std::function<bool(int64_t, int64_t)> masks[] = {
      [](int64_t row, int64_t column) { return column <= row && !(row == 60 && column == 30); },
      [](int64_t row, int64_t column) { return column <= row || (row == 3 && column == 4); },
      [](int64_t row, int64_t column) { return row / 8 == column / 8; }};
  for (const auto& seen : masks) {
    EXPECT_EQ(count_of(after(constant_mask_graph(seen), "constant_masks"), Op::kIota), 0);
  }
}

TEST(RowBounds, AreLinesBetweenTwoLimits) {
  const std::vector<int64_t> prefix{3, 3, 3, 4, 5, 6, 6}, steps{0, 0, 1, 1, 2}, cut{0, 1, 3, 5};
  const auto bound = ir::fit_row_bound(prefix);
  ASSERT_TRUE(bound);
  EXPECT_EQ(*bound, (ir::RowBound{1, 1, 3, 6}));
  EXPECT_FALSE(ir::fit_row_bound(steps));
  const auto after_a_limit = ir::fit_row_bound(cut);
  ASSERT_TRUE(after_a_limit);
  for (int64_t row = 0; row < 4; ++row) EXPECT_EQ(after_a_limit->at(row), cut[static_cast<size_t>(row)]);
}

TEST(CloneMasks, EachAttentionHasItsOwn) {
  ir::Graph graph;
  ir::Builder b(graph);
  const Shape shape{64, 64};
  const ValueId past = b.binary(Op::kLe, b.iota(DType::kI32, shape, 1), b.iota(DType::kI32, shape, 0));
  const ValueId mask = b.select(past, b.full(DType::kF32, shape, 0), b.full(DType::kF32, shape, -1e4));
  for (const char* name : {"x", "y"}) {
    const ValueId x = graph.parameter(name, {DType::kF32, shape});
    graph.output(std::string(name) + "_exponentials", b.unary(Op::kExp, b.add(b.matmul(x, x), mask)));
  }
  // No product feeds this one, so it reads what one of the others has.
  graph.output("plain", b.unary(Op::kExp, mask));
  const ir::Graph changed = after(graph, "clone_masks");
  EXPECT_EQ(count_of(changed, Op::kSelect), 3);
  EXPECT_EQ(count_of(changed, Op::kLe), 3);
}

}  // namespace
}  // namespace heddle::passes
