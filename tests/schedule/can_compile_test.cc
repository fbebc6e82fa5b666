#include <gtest/gtest.h>

#include "ir/builder.h"
#include "schedule/kernel_desc.h"

namespace heddle::schedule {
namespace {

// A product of f32[rows, depth] and f32[depth, columns].
std::string reason_for(int64_t rows, int64_t depth, int64_t columns, TargetKind kind) {
  ir::Graph graph;
  ir::Builder b(graph);
  const ir::ValueId x = graph.parameter("x", {DType::kF32, {rows, depth}});
  const ir::ValueId w = graph.parameter("w", {DType::kF32, {depth, columns}});
  const ir::ValueId y = b.matmul(x, w);
  Target target = Target::cuda_h200(1);
  target.kind = kind;
  std::string reason;
  can_compile(graph, graph.producer(y), target, &reason);
  return reason;
}

TEST(CanCompile, ProductsOnAGpuCountIn32Bits) {
  constexpr int64_t kMost = INT32_MAX;
  EXPECT_EQ(reason_for(kMost, 4, 2, TargetKind::kCuda), "");
  EXPECT_EQ(reason_for(65536, 4, 65536, TargetKind::kCuda), "");
  EXPECT_NE(reason_for(kMost + 1, 4, 2, TargetKind::kCuda), "");
  EXPECT_NE(reason_for(2, 4, kMost + 1, TargetKind::kCuda), "");
  EXPECT_NE(reason_for(2, kMost + 1, 2, TargetKind::kCuda), "");
  EXPECT_NE(reason_for(kMost, 4, 1 << 16, TargetKind::kCuda), "") << "tiles";
  EXPECT_EQ(reason_for(kMost + 1, 4, 2, TargetKind::kCpu), "");
}

// The same of a batch, whose extents multiply.
TEST(CanCompile, BatchesOnAGpuCountIn32Bits) {
  const auto reason = [](const Shape& batch, TargetKind kind) {
    ir::Graph graph;
    ir::Builder b(graph);
    Shape left = batch, right = batch;
    left.insert(left.end(), {2, 4}), right.insert(right.end(), {4, 2});
    const ir::ValueId y =
        b.matmul(graph.parameter("x", {DType::kF16, left}), graph.parameter("w", {DType::kF16, right}));
    Target target = Target::cuda_h200(1);
    target.kind = kind;
    std::string why;
    const bool compiles = can_compile(graph, graph.producer(y), target, &why);
    EXPECT_EQ(compiles, why.empty());
    return why;
  };
  EXPECT_EQ(reason({1 << 20}, TargetKind::kCuda), "");
  EXPECT_NE(reason({int64_t{INT32_MAX} + 1}, TargetKind::kCuda), "");
  EXPECT_NE(reason({1 << 16, 1 << 16}, TargetKind::kCuda), "");
  EXPECT_EQ(reason({1 << 16, 1 << 16}, TargetKind::kCpu), "");
}

}  // namespace
}  // namespace heddle::schedule
