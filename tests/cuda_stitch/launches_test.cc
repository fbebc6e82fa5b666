// Kernels of a group that share a launch: side by side, or one computed by the last blocks of another.
#include <gtest/gtest.h>

#include "machine.h"
#include "schedule/region/cuda/launch/bundle.h"

namespace heddle::testing {
namespace {

using ir::Builder;
using ir::Op;
using schedule::CudaBundleDesc;

constexpr schedule::StitchOptions kInParts = {.mapping = schedule::ForcedMapping::kParts};

schedule::ScheduledGroup schedule_of(const std::function<void(Builder&)>& build,
                                     const schedule::StitchOptions& options = {},
                                     const Target& target = test_target()) {
  ir::Graph graph;
  Builder b(graph);
  build(b);
  return schedule::schedule(graph, whole_graph(graph), target, nullptr, options);
}

// A device on which the boundary of two kernels takes longer than their join.
Target slow_boundaries() {
  Target target = test_target();
  target.cuda.model.chip.graph_boundary_us = 3;
  return target;
}

void rows_and_columns(Builder& b, int64_t m, int64_t n) {
  const auto x = input(b, "x", DType::kF32, {m, n});
  b.graph().output("rows", b.reduce("sum", x, {1}, false));
  b.graph().output("columns", b.reduce("max", x, {0}, false));
}

// Reductions of inputs of unequal shapes, then a value of both.
void unequal_shapes(Builder& b, int64_t n) {
  const auto sum = b.reduce("sum", input(b, "x", DType::kF32, {100, n}), {0}, false);
  const auto most = b.reduce("max", input(b, "y", DType::kF16, {n, 37}), {1}, false);
  b.graph().output("sum", sum);
  b.graph().output("most", most);
  b.graph().output("both", b.mul(sum, b.cast(most, DType::kF32)));
}

void scaled_sums(Builder& b, const Shape& shape, const ir::Ints& dims) {
  const auto x = b.unary(Op::kAbs, input(b, "x", DType::kF32, shape));
  const auto sum = b.reduce("sum", x, dims, false), most = b.reduce("max", x, dims, false);
  b.graph().output("y", b.unary(Op::kRsqrt, b.binary(Op::kAdd, b.mul(sum, most), 1.0)));
}

TEST(CudaLaunches, UnequalKernelsGoSideBySide) {
  Batch batch;
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{64, 256}, {40, 1030}, {7, 33}, {130, 2000}}) {
    batch.add(
        "rows and columns" + std::to_string(n), [&, m = m, n = n](Builder& b) { rows_and_columns(b, m, n); }, 1e-3);
    batch.add(
        "unequal" + std::to_string(n), [&, n = n](Builder& b) { unequal_shapes(b, n); }, 1e-3);
  }
  batch.run();
  const schedule::ScheduledGroup small = schedule_of([](Builder& b) { rows_and_columns(b, 64, 256); });
  ASSERT_EQ(small.kernels.size(), 1u);
  const auto bundle = small.kernels[0].desc.get<CudaBundleDesc>();
  ASSERT_NE(bundle, nullptr);
  EXPECT_EQ(bundle->parts.size(), 2u);
  const auto apart = schedule_of([](Builder& b) { rows_and_columns(b, 64, 256); }, {.global = false});
  EXPECT_EQ(apart.kernels.size(), 2u);
}

TEST(CudaLaunches, LastBlocksCombineParts) {
  Batch batch(slow_boundaries(), kInParts);
  batch.add(
      "columns",
      [](Builder& b) {
        scaled_sums(b, {1000, 96}, {0});
      },
      1e-3);
  batch.add(
      "odd columns",
      [](Builder& b) {
        scaled_sums(b, {777, 37}, {0});
      },
      1e-3);
  batch.add(
      "columns of images",
      [](Builder& b) {
        scaled_sums(b, {3, 500, 64}, {1});
      },
      1e-3);
  batch.add(
      "rows",
      [](Builder& b) {
        scaled_sums(b, {5, 30000}, {1});
      },
      1e-3);
  batch.add(
      "all",
      [](Builder& b) {
        scaled_sums(b, {400, 500}, {0, 1});
      },
      1e-3);
  batch.run();
}

TEST(CudaLaunches, PartsOfColumnsAreOneLaunch) {
  const auto columns = [](Builder& b) { scaled_sums(b, {8192, 1024}, {0}); };
  const schedule::ScheduledGroup group = schedule_of(columns, {}, slow_boundaries());
  ASSERT_EQ(group.kernels.size(), 1u);
  const auto bundle = group.kernels[0].desc.get<CudaBundleDesc>();
  ASSERT_NE(bundle, nullptr);
  ASSERT_TRUE(bundle->last.has_value());
  EXPECT_EQ(bundle->last->arrivals * bundle->last->part.body->blocks, bundle->parts[0].body->blocks);
  EXPECT_EQ(schedule_of(columns, {.global = false}, slow_boundaries()).kernels.size(), 2u);
  const schedule::ScheduledGroup all = schedule_of(
      [](Builder& b) {
        scaled_sums(b, {8192, 1024}, {0, 1});
      },
      {}, slow_boundaries());
  EXPECT_EQ(all.kernels.size(), 1u);
  EXPECT_EQ(schedule_of(columns).kernels.size(), 2u);  // an H200's boundaries are shorter
}

// A block that reads what its neighbour's blocks sum would not wait for them.
TEST(CudaLaunches, ShiftedReadsAreNoLastStep) {
  for (const bool has_window : {false, true}) {
    const schedule::ScheduledGroup group = schedule_of(
        [&](Builder& b) {
          const auto sum = b.reduce("sum", input(b, "x", DType::kF32, {8192, 1024}), {0}, false);
          const auto shifted =
              b.concat(std::vector<ir::ValueId>{b.slice_dim(sum, 0, 1, 1024), b.slice_dim(sum, 0, 0, 1)}, 0);
          b.graph().output("y", has_window ? b.add(sum, shifted) : shifted);
        },
        {}, slow_boundaries());
    EXPECT_EQ(group.kernels.size(), 2u);
    for (const auto& kernel : group.kernels) EXPECT_EQ(kernel.desc.get<CudaBundleDesc>(), nullptr);
  }
}

// Where a guard selects another value, the reduction reads no address outside of its operand.
TEST(CudaLaunches, ReductionsBelowAGuardStayInside) {
  for (const bool in_parts : {false, true}) {
    Batch batch(test_target(), in_parts ? kInParts : schedule::StitchOptions{});
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>{300, 1024}, {131, 3001}}) {
      batch.add(
          "rolled columns" + std::to_string(n),
          [m = m, n = n](Builder& b) {
            const auto sum = b.reduce("sum", input(b, "x", DType::kF32, {m, n}), {0}, false);
            const std::vector<ir::ValueId> parts = {b.slice_dim(sum, 0, 5, n), b.slice_dim(sum, 0, 0, 5)};
            b.graph().output("y", b.concat(parts, 0));
          },
          1e-3);
      batch.add(
          "padded rows" + std::to_string(n),
          [m = m, n = n](Builder& b) {
            const auto most = b.reduce("max", input(b, "x", DType::kF32, {n, m}), {1}, false);
            b.graph().output("y", b.concat(std::vector<ir::ValueId>{most, input(b, "tail", DType::kF32, {70})}, 0));
          },
          1e-3);
    }
    batch.run();
  }
}

// What stays apart says why.
TEST(CudaLaunches, RefusalsHaveReasons) {
  const schedule::ScheduledGroup large =
      schedule_of([](Builder& b) { rows_and_columns(b, 8192, 1024); }, {}, slow_boundaries());
  ASSERT_EQ(large.kernels.size(), 2u);
  EXPECT_TRUE(std::any_of(large.notes.begin(), large.notes.end(), [](const std::string& note) {
    return note.find("is not the last step of") != std::string::npos;
  }));
}

}  // namespace
}  // namespace heddle::testing
