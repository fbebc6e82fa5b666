#include "schedule/region/stitch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "ir/builder.h"
#include "schedule/region/cuda/cta_group.h"
#include "tests/codegen/harness.h"

namespace heddle::schedule {
namespace {

using ir::Builder;
using ir::Op;
using ir::ValueId;

Target target() {
  Target t;
  t.cpu.isa = CpuIsa::kAvx512;
  t.cpu.threads = 2;
  return t;
}

ScheduledGroup schedule_all(const ir::Graph& graph) {
  return schedule(graph, testing::whole_graph(graph), target());
}

const CpuStitchDesc& body(const ScheduledGroup& group, size_t kernel = 0) {
  return *std::get<std::shared_ptr<const CpuStitchDesc>>(group.kernels.at(kernel).desc.body);
}

size_t reductions(const Stage& stage) {
  return stage.reductions.size();
}

// All SMs work on columns together where each of them has enough of them.
TEST(StitchSchedule, AGridTakesColumnsThatFillIt) {
  const CudaTarget gpu = Target::cuda_h200(2).cuda;
  for (const auto& [width, vector] : {std::pair(4, 4), {2, 8}}) {
    const ElementBytes dtype_bytes{width, width};
    const auto many = cta_group_for_columns(gpu, 100352, 64, 1, vector, dtype_bytes);
    ASSERT_TRUE(many.has_value());
    EXPECT_TRUE(many->whole_grid);
    EXPECT_FALSE(cta_group_for_columns(gpu, 10, 8, 1, vector, dtype_bytes).has_value());
    EXPECT_FALSE(cta_group_for_columns(gpu, 0, 8, 1, vector, dtype_bytes).has_value());
    EXPECT_FALSE(cta_group_for_columns(gpu, 100352, 64, 1, vector, {width, 12}).has_value());
  }
}

// Fewer rows than SMs are shared by clusters, however long they are.
TEST(StitchSchedule, FewLongRowsLieInSeveralBlocks) {
  const CudaTarget gpu = Target::cuda_h200().cuda;
  for (const int64_t steps : {int64_t{1} << 14, int64_t{1} << 18, int64_t{1} << 20}) {
    const auto few = cta_group_for_rows(gpu, 32, steps, 4, 16.0 * static_cast<double>(steps));
    ASSERT_TRUE(few.has_value()) << steps;
    EXPECT_GE(few->blocks, 2) << steps;
  }
  EXPECT_FALSE(cta_group_for_rows(gpu, 4096, 1 << 18, 4, 16.0 * (1 << 18)).has_value());
}

// What is too large for a kernel is found while kernels are made; no find begins all of them again.
TEST(StitchSchedule, LongChainsTakeTimeByTheirLength) {
  for (const TargetKind kind : {TargetKind::kCpu, TargetKind::kCuda}) {
    Target machine = target();
    machine.kind = kind;
    const auto seconds = [&](int steps) {
      ir::Graph graph;
      Builder b(graph);
      ValueId t = graph.parameter("x", {DType::kF32, {37}});
      const ValueId i = graph.parameter("i", {DType::kI32, {37}}), j = graph.parameter("j", {DType::kI32, {37}});
      for (int step = 0; step < steps; ++step) t = b.add(b.gather(t, i, 0), b.gather(t, j, 0));
      graph.output("y", t);
      const std::clock_t start = std::clock();
      EXPECT_GT(schedule(graph, testing::whole_graph(graph), machine).kernels.size(), 4);
      return static_cast<double>(std::clock() - start);
    };
    seconds(50);
    EXPECT_LT(seconds(800), 9 * seconds(200));
  }
}

TEST(StitchSchedule, SoftmaxIsThreeSweepsThatComputeExpOnce) {
  ir::Graph graph;
  Builder b(graph);
  graph.output("y", b.softmax(graph.parameter("x", {DType::kF32, {4096, 1024}}), {1}));
  const ScheduledGroup group = schedule_all(graph);
  ASSERT_EQ(group.kernels.size(), 1u);
  const CpuStitchDesc& d = body(group);
  ASSERT_EQ(d.stages.size(), 3u);
  EXPECT_EQ(reductions(d.stages[0]), 1u);
  EXPECT_EQ(reductions(d.stages[1]), 1u);
  EXPECT_EQ(d.stages[1].pieces[0].stores.size(), 1u) << "the sweep of the sum stores exp";
  EXPECT_EQ(reductions(d.stages[2]), 0u);
  ASSERT_EQ(d.scratch.size(), 1u);
  EXPECT_EQ(d.scratch[0].elements, 1024);
  EXPECT_EQ(d.iterations(), 4096);
  EXPECT_GE(group.kernels[0].config.tasks, 2);
}

TEST(StitchSchedule, ReductionsOverTheSameDataShareASweep) {
  ir::Graph graph;
  Builder b(graph);
  const ValueId x = graph.parameter("x", {DType::kF32, {64, 300}});
  graph.output("sum", b.reduce("sum", x, {1}));
  graph.output("max", b.reduce("max", x, {1}));
  const ScheduledGroup group = schedule_all(graph);
  ASSERT_EQ(group.kernels.size(), 1u);
  EXPECT_EQ(reductions(body(group).stages[0]), 2u);
}

TEST(StitchSchedule, AFullReductionTakesTwoStepsThroughAWorkspace) {
  ir::Graph graph;
  Builder b(graph);
  graph.output("y", b.reduce("sum", graph.parameter("x", {DType::kF32, {1 << 22}}), {0}));
  const ScheduledGroup group = schedule_all(graph);
  ASSERT_EQ(group.kernels.size(), 2u);
  EXPECT_EQ(group.workspaces.size(), 1u);
  EXPECT_GE(group.kernels[0].config.tasks, 2);
}

// Sums over images and pixels, as those of a batch normalisation and of its gradient. No dimension has as many steps as
// an H200 needs blocks.
TEST(StitchSchedule, SumsOverSeveralDimensionsFillAGpu) {
  for (const Shape& shape : {Shape{64, 56, 56, 64}, {64, 57, 55, 32}, {48, 28, 29, 30, 16}}) {
    ir::Graph graph;
    Builder b(graph);
    ir::Ints pixels;
    for (size_t d = 0; d + 1 < shape.size(); ++d) pixels.push_back(static_cast<int64_t>(d));
    const ValueId x = b.cast(graph.parameter("x", {DType::kF16, shape}), DType::kF32);
    const ValueId dy = b.cast(graph.parameter("dy", {DType::kF16, shape}), DType::kF32);
    graph.output("dg", b.reduce("sum", b.mul(x, dy), pixels, false));
    graph.output("db", b.reduce("sum", dy, pixels, false));
    const ScheduledGroup group = schedule(graph, testing::whole_graph(graph), Target::cuda_h200());
    EXPECT_EQ(group.kernels.size(), 2u);  // parts of both sums, and the sums of these
    EXPECT_GE(group.kernels[0].config.tasks, 132);
  }
}

// The range of an image's values, as dynamic quantisation needs it. The channels alone have as many steps as an H200
// needs blocks, but parts of them would be columns.
TEST(StitchSchedule, FullReductionsTakePartsThatAreContiguous) {
  for (const Shape& shape : {Shape{32, 28, 28, 512}, {32, 14, 14, 1024}, {4096, 4096}, {8, 128, 3072}}) {
    ir::Graph graph;
    Builder b(graph);
    ir::Ints all;
    for (size_t d = 0; d < shape.size(); ++d) all.push_back(static_cast<int64_t>(d));
    graph.output("y", b.reduce("max", graph.parameter("x", {DType::kF32, shape}), all, false));
    const ScheduledGroup group = schedule(graph, testing::whole_graph(graph), Target::cuda_h200());
    ASSERT_EQ(group.kernels.size(), 2u);
    EXPECT_GE(group.kernels[0].config.tasks, 132);
  }
}

// What a batch normalisation returns beside its result in training, and its gradients, come from the kernel that reads
// the images. The number of images may be that of channels.
TEST(StitchSchedule, StatisticsAreMadeWithWhatTheyNormalise) {
  for (const Shape& shape : {Shape{64, 56, 56, 64}, {32, 28, 28, 128}, {5, 61, 67, 32}}) {
    const Shape columns = {shape.back()};
    const auto spread = [&](Builder& b, ValueId v) { return b.broadcast(v, shape, {3}); };
    ir::Graph forward;
    Builder b(forward);
    const ValueId x = b.cast(forward.parameter("x", {DType::kBF16, shape}), DType::kF32);
    const ValueId mean = b.mean(x, {0, 1, 2}, false), centred = b.sub(x, spread(b, mean));
    const ValueId variance = b.mean(b.mul(centred, centred), {0, 1, 2}, false);
    const ValueId factor = b.unary(Op::kRsqrt, b.binary(Op::kAdd, variance, 1e-5));
    forward.output("mean", mean);
    forward.output("running", b.add(variance, forward.parameter("old", {DType::kF32, columns})));
    forward.output("y", b.cast(b.mul(centred, spread(b, factor)), DType::kBF16));
    EXPECT_EQ(schedule(forward, testing::whole_graph(forward), Target::cuda_h200()).kernels.size(), 1u);
  }
  // Two operands of this size do not fit on the chip together: parts, their sums, and what reads them.
  const Shape shape = {64, 56, 56, 64};
  ir::Graph backward;
  Builder b(backward);
  const ValueId x = b.cast(backward.parameter("x", {DType::kBF16, shape}), DType::kF32);
  const ValueId dy = b.cast(backward.parameter("dy", {DType::kBF16, shape}), DType::kF32);
  const ValueId bias = b.reduce("sum", dy, {0, 1, 2}, false), scale = b.reduce("sum", b.mul(dy, x), {0, 1, 2}, false);
  const ValueId terms = b.add(b.broadcast(bias, shape, {3}), b.mul(x, b.broadcast(scale, shape, {3})));
  backward.output("bias", bias);
  backward.output("scale", scale);
  backward.output("dx", b.cast(b.sub(dy, terms), DType::kBF16));
  EXPECT_EQ(schedule(backward, testing::whole_graph(backward), Target::cuda_h200()).kernels.size(), 3u);
}

TEST(StitchSchedule, SmallWorkIsOneTask) {
  ir::Graph graph;
  Builder b(graph);
  graph.output("y", b.softmax(graph.parameter("x", {DType::kF32, {2, 128}}), {1}));
  EXPECT_EQ(schedule_all(graph).kernels[0].config.tasks, 1);
}

TEST(StitchSchedule, NeighbouringDimensionsMergeIntoOneLongLoop) {
  ir::Graph graph;
  Builder b(graph);
  graph.output("y", b.unary(Op::kTanh, graph.parameter("x", {DType::kF32, {3, 5, 7, 11}})));
  const ScheduledGroup group = schedule_all(graph);
  const CpuStitchDesc& d = body(group);
  ASSERT_EQ(d.stages[0].loops.size(), 1u);
  EXPECT_EQ(d.pool.indices.extent(d.stages[0].loops[0]), 3 * 5 * 7 * 11);
}

TEST(StitchSchedule, EmptyResultsNeedNoKernel) {
  ir::Graph graph;
  Builder b(graph);
  graph.output("y", b.unary(Op::kTanh, graph.parameter("x", {DType::kF32, {0, 5}})));
  EXPECT_TRUE(schedule_all(graph).kernels.empty());
}

TEST(StitchSchedule, RefusalsSayWhy) {
  ir::Graph graph;
  const auto select = [&](const char* name, DType dtype) {
    return graph.add(Op::kTopK, {graph.parameter(name, {dtype, {4, 5}})},
                     {{"k", int64_t{2}}, {"dim", int64_t{1}}, {"largest", int64_t{1}}, {"sorted", int64_t{1}}});
  };
  const ir::NodeId numbers = select("x", DType::kF32), parts = select("y", DType::kI4);
  for (const TargetKind kind : {TargetKind::kCpu, TargetKind::kCuda}) {
    Target any = target();
    any.kind = kind;
    EXPECT_TRUE(can_compile(graph, graph.node(numbers), any));
    std::string reason;
    EXPECT_FALSE(can_compile(graph, graph.node(parts), any, &reason));
    EXPECT_THAT(reason, ::testing::HasSubstr("selections compare whole bytes"));
  }
}

}  // namespace
}  // namespace heddle::schedule
