#include "schedule/region/bundle.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/builder.h"
#include "tests/codegen/harness.h"

namespace heddle::schedule {
namespace {

using ir::Builder;
using ir::Op;
using ir::ValueId;

Target cpu_of(int threads = 2) {
  Target t;
  t.cpu.isa = CpuIsa::kAvx512;
  t.cpu.threads = threads;
  return t;
}

ScheduledGroup schedule_stitched(const ir::Graph& graph, const StitchOptions& options = {},
                                 const Target& target = cpu_of()) {
  return schedule(graph, testing::whole_graph(graph), target, nullptr, options);
}

// Rows centred, and the sums of the columns of the result.
ir::Graph rows_and_columns(int64_t rows, int64_t columns) {
  ir::Graph graph;
  Builder b(graph);
  const ValueId x = graph.parameter("x", {DType::kF32, {rows, columns}});
  const ValueId centred = b.sub(x, b.mean(x, {1}, true));
  graph.output("y", centred);
  graph.output("s", b.reduce("sum", b.mul(centred, x), {0}));
  return graph;
}

TEST(StitchSchedule, RowsAndColumnsOfLargeDataShareOneRead) {
  const int64_t rows = 16384, columns = 768;
  for (int threads : {1, 2}) {
    const ScheduledGroup group = schedule_stitched(rows_and_columns(rows, columns), {}, cpu_of(threads));
    ASSERT_EQ(group.kernels.size(), 2u) << "parts of the columns with the rows, then the sum of the parts";
    EXPECT_EQ(group.kernels[0].desc.operands.size(), 3u) << "x, y and the parts";
    const double compulsory = 2.0 * 4 * rows * columns;
    EXPECT_LT(group.kernels[0].stitch.bytes_moved + group.kernels[1].stitch.bytes_moved, 1.1 * compulsory);
    ASSERT_EQ(group.boundaries.size(), 1u);
    EXPECT_NE(group.boundaries[0].reason.find("share one read"), std::string::npos) << group.boundaries[0].reason;
  }
}

// The gradient of the layer below in f32 and, for a product, in bf16.
TEST(StitchSchedule, AKernelWithColumnSumsMakesAllRowsThatItCan) {
  ir::Graph graph;
  Builder b(graph);
  const Shape shape = {2, 2048, 2048};
  const ValueId dy = graph.parameter("dy", {DType::kF32, shape}), x = graph.parameter("x", {DType::kF32, shape});
  const ValueId dx = b.mul(b.reduce("sum", b.mul(dy, x), {2}, true), x);
  graph.output("dw", b.reduce("sum", b.mul(dy, x), {0, 1}));
  graph.output("dx", dx);
  graph.output("narrow", b.cast(dx, DType::kBF16));
  const ScheduledGroup group = schedule_stitched(graph, {}, Target::cuda_h200());
  ASSERT_EQ(group.kernels.size(), 2u) << "rows with parts of the columns, then the sum of the parts";
  EXPECT_EQ(group.kernels[0].desc.operands.size(), 5u) << "dy, x, dx, narrow and the parts";
}

// The gradient of a bias beside what it is a sum of. Each row is written once, by the warp that adds it to its columns.
TEST(StitchSchedule, RowsWithoutReductionsCarryTheirColumns) {
  for (const int64_t columns : {96, 768, 3072}) {
    ir::Graph graph;
    Builder b(graph);
    const ValueId x = graph.parameter("x", {DType::kF32, {64, 56, 56, columns}}),
                  y = graph.parameter("y", {DType::kF32, {64, 56, 56, columns}});
    const ValueId z = b.add(x, y);
    graph.output("z", z);
    graph.output("sum", b.reduce("sum", z, {0, 1, 2}));
    const ScheduledGroup group = schedule_stitched(graph, {}, Target::cuda_h200());
    ASSERT_EQ(group.kernels.size(), 2u) << columns;
    EXPECT_EQ(group.kernels[0].stitch.mapping.rfind(fmt::format("{} points an iteration", columns), 0), 0u)
        << group.kernels[0].stitch.mapping;
    EXPECT_LT(group.kernels[0].stitch.bytes_moved, 1.1 * 3 * 4 * 64 * 56 * 56 * static_cast<double>(columns));
  }
}

TEST(StitchSchedule, RowsInAnotherOrderThanTheirColumnsAreAlone) {
  ir::Graph graph;
  Builder b(graph);
  const ValueId x = graph.parameter("x", {DType::kBF16, {64, 28, 28, 192}});
  graph.output("y", b.transpose(x, {3, 1, 2, 0}));
  graph.output("sum", b.reduce("sum", b.cast(x, DType::kF32), {0, 1, 2}));
  for (const ScheduledKernel& kernel : schedule_stitched(graph, {}, Target::cuda_h200()).kernels) {
    const auto outputs = std::count_if(kernel.desc.operands.begin(), kernel.desc.operands.end(),
                                       [](const Operand& o) { return o.role == Operand::Role::kOutput; });
    EXPECT_EQ(outputs, 1) << kernel.stitch.mapping;
  }
}

// As in the gradient of a max pool behind a convolution: no tile serves operands whose rows are split in two by the
// windows.
TEST(StitchSchedule, OperandsInAThirdOrderComeBeforeTheTranspose) {
  ir::Graph graph;
  Builder b(graph);
  const ValueId x = graph.parameter("x", {DType::kF32, {64, 64, 16, 128}}),
                windows = graph.parameter("windows", {DType::kBF16, {64, 8, 64, 64}});
  const ValueId apart = b.reshape(b.transpose(windows, {0, 3, 1, 2}), {64, 64, 8, 1, 64, 1});
  const ValueId spread = b.reshape(b.broadcast_to(apart, {64, 64, 8, 2, 64, 2}), {64, 64, 16, 128});
  const ValueId y = b.cast(b.mul(x, b.cast(spread, DType::kF32)), DType::kBF16);
  graph.output("y", b.transpose(y, {1, 2, 3, 0}));
  const ScheduledGroup group = schedule_stitched(graph, {}, Target::cuda_h200());
  ASSERT_EQ(group.kernels.size(), 2u);
  EXPECT_EQ(group.kernels[0].desc.operands.back().dtype, DType::kBF16);
  EXPECT_EQ(group.kernels[1].stitch.mapping.rfind("tiles through shared memory", 0), 0u)
      << group.kernels[1].stitch.mapping;
  ASSERT_EQ(group.boundaries.size(), 1u);
  EXPECT_NE(group.boundaries[0].reason.find("another order"), std::string::npos) << group.boundaries[0].reason;
}

TEST(StitchSchedule, SwitchesLeavePartsOut) {
  ir::Graph softmax;
  softmax.output("y", Builder(softmax).softmax(softmax.parameter("x", {DType::kF32, {64, 300}}), {1}));
  ir::Graph two;
  Builder b(two);
  const ValueId x = two.parameter("x", {DType::kF32, {64, 300}});
  two.output("sum", b.reduce("sum", x, {1}));
  two.output("max", b.reduce("max", x, {1}));
  for (const Target& target : {cpu_of(), Target::cuda_h200()}) {
    EXPECT_EQ(schedule_stitched(softmax, {}, target).kernels.size(), 1u);
    EXPECT_EQ(schedule_stitched(softmax, {.data_reuse = false}, target).kernels.size(), 3u);
    EXPECT_EQ(schedule_stitched(two, {}, target).kernels.size(), 1u);
    EXPECT_EQ(schedule_stitched(two, {.dominant_merging = false}, target).kernels.size(), 2u);
  }
  // A million rows of 8 are not a block's each, unless nothing adapts to them.
  ir::Graph rows;
  rows.output("y", Builder(rows).softmax(rows.parameter("x", {DType::kF32, {1 << 20, 8}}), {1}));
  const auto blocks = [&](const StitchOptions& options) {
    return schedule_stitched(rows, options, Target::cuda_h200()).kernels.at(0).config.tasks;
  };
  EXPECT_LT(blocks({}), 1 << 16);
  EXPECT_EQ(blocks({.adaptive_mapping = false}), 1 << 20);
}

TEST(Bundle, ShortKernelsRunInARow) {
  ir::Graph graph;
  Builder b(graph);
  graph.output("a", b.unary(Op::kTanh, graph.parameter("x", {DType::kF32, {40}})));
  graph.output("b", b.unary(Op::kNeg, graph.parameter("y", {DType::kF32, {3, 5}})));
  const ScheduledGroup apart = schedule_stitched(graph);
  ASSERT_EQ(apart.kernels.size(), 2u);
  const ScheduledGroup group = bundle_kernels(apart, cpu_of());
  ASSERT_EQ(group.kernels.size(), 1u);
  EXPECT_EQ(group.kernels[0].config.tasks, 1);
  EXPECT_EQ(group.kernels[0].bindings.size(), 4u);
}

TEST(Bundle, LongKernelsThatDoNotMeetRunSideBySide) {
  ir::Graph graph;
  Builder b(graph);
  graph.output("a", b.unary(Op::kTanh, graph.parameter("x", {DType::kF32, {400000}})));
  graph.output("b", b.unary(Op::kTanh, graph.parameter("y", {DType::kF32, {300000}})));
  const ScheduledGroup apart = schedule_stitched(graph);
  ASSERT_EQ(apart.kernels.size(), 2u);
  const ScheduledGroup group = bundle_kernels(apart, cpu_of());
  ASSERT_EQ(group.kernels.size(), 1u);
  EXPECT_EQ(group.kernels[0].config.tasks, apart.kernels[0].config.tasks + apart.kernels[1].config.tasks);
}

TEST(Bundle, AKernelWaitsForWhatItReads) {
  ir::Graph graph;
  Builder b(graph);
  graph.output("y", b.reduce("sum", graph.parameter("x", {DType::kF32, {1 << 22}}), {0}));
  EXPECT_EQ(bundle_kernels(schedule_stitched(graph), cpu_of()).kernels.size(), 2u);
}

}  // namespace
}  // namespace heddle::schedule
