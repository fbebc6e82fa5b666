// Graphs of very many nodes: passes and fusion take time in proportion, groups have a bounded size.
#include <algorithm>

#include "ir/builder.h"
#include "pass_test_util.h"
#include "passes/fusion/fusion.h"
#include "passes/layout/split_concats.h"

namespace heddle::passes {
namespace {

using ir::Builder;
using ir::Op;
using ir::ValueId;

size_t largest(const ir::Grouping& grouping) {
  size_t most = 0;
  for (const ir::Group& group : grouping.groups) most = std::max(most, group.nodes.size());
  return most;
}

TEST(Large, ChainsBecomeSeveralGroups) {
  ir::Graph graph;
  Builder b(graph);
  ValueId v = graph.parameter("x", {DType::kF32, {8}});
  for (int i = 0; i < 30'000; ++i) v = b.unary(i % 2 == 0 ? Op::kSin : Op::kAbs, v);
  graph.output("y", v);
  const ir::Graph optimised = run_pipeline(graph, {test_target()});
  EXPECT_EQ(optimised.nodes().size(), graph.nodes().size());
  for (const FusionPolicy policy : {FusionPolicy::kBasic, FusionPolicy::kStitch}) {
    const ir::Grouping grouping = fuse(optimised, test_target(), {.policy = policy});
    EXPECT_LE(largest(grouping), 2000u);
    EXPECT_LE(grouping.groups.size(), 100u);
  }
}

// One value with many readers, all of which meet again.
TEST(Large, ReadersOfOneValue) {
  ir::Graph graph;
  Builder b(graph);
  const ValueId hub = b.unary(Op::kExp, graph.parameter("x", {DType::kF32, {8}}));
  std::vector<ValueId> parts;
  for (int i = 0; i < 30'000; ++i)
    parts.push_back(b.add(hub, graph.parameter("p" + std::to_string(i), {DType::kF32, {8}})));
  graph.output("y", b.concat(parts, 0));
  const ir::Graph split = split_concats(graph, {test_target()});
  const ir::Grouping grouping = fuse(split, test_target(), {.policy = FusionPolicy::kStitch});
  EXPECT_LE(largest(grouping), 2000u);
}

// Readers of one value that share a kernel on a GPU: as many kernels as their number needs, not one for each reader
// behind the first full one.
TEST(Large, SiblingsFillSeveralGroups) {
  constexpr int64_t kParts = 5'000;
  ir::Graph graph;
  Builder b(graph);
  const ValueId x = graph.parameter("x", {DType::kF32, {8 * kParts}});
  for (int64_t i = 0; i < kParts; ++i) {
    graph.output("y" + std::to_string(i),
                 b.emit(Op::kSlice, {x},
                        {{"starts", ir::Ints{8 * i}}, {"limits", ir::Ints{8 * (i + 1)}}, {"strides", ir::Ints{1}}}));
  }
  const ir::Grouping grouping = fuse(graph, Target::cuda_h200(), {.policy = FusionPolicy::kStitch});
  EXPECT_LE(largest(grouping), 2000u);
  EXPECT_LE(grouping.groups.size(), 10u);
}

TEST(Large, ContractionsTakeNoEndlessEpilogues) {
  ir::Graph graph;
  Builder b(graph);
  const ValueId w = graph.parameter("w", {DType::kF32, {8, 8}});
  ValueId v = b.matmul(graph.parameter("x", {DType::kF32, {8, 8}}), w);
  for (int i = 0; i < 3'000; ++i) v = b.unary(Op::kSin, v);
  graph.output("y", v);
  const ir::Grouping grouping = fuse(graph, test_target(), {.policy = FusionPolicy::kStitch});
  for (const ir::Group& group : grouping.groups) {
    if (group.kind == ir::GroupKind::kContraction) {
      EXPECT_LE(group.nodes.size(), 128u);
    }
  }
}

TEST(Large, ConcatenationsOfManyPartsAreSplit) {
  ir::Graph graph;
  Builder b(graph);
  std::vector<ValueId> parts;
  for (int i = 0; i < 5'000; ++i)
    parts.push_back(graph.parameter("x" + std::to_string(i), {DType::kF32, {1 + i % 3, 2}}));
  graph.output("y", b.concat(parts, 0));
  const ir::Graph split = run_pipeline(graph, {test_target()});
  for (const ir::Node& node : split.nodes()) EXPECT_LE(node.inputs.size(), kMostConcatParts);
  expect_same(graph, split, 0);
}

// A concatenation of a concatenation with itself and so on: not one of 2^30 parts.
TEST(Large, ConcatenationsOfConcatenationsStayShared) {
  ir::Graph graph;
  Builder b(graph);
  ValueId v = graph.parameter("x", {DType::kF32, {1}});
  for (int i = 0; i < 30; ++i) v = b.concat(std::vector<ValueId>{v, v}, 0);
  graph.output("y", v);
  EXPECT_LE(run_pipeline(graph, {test_target()}).nodes().size(), 40u);
}

}  // namespace
}  // namespace heddle::passes
