#include "schedule/region/repeats.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "codegen/codegen.h"
#include "ir/builder.h"
#include "ir/rewrite.h"
#include "schedule/kernel_plan.h"
#include "tests/codegen/harness.h"
#include "tests/schedule/attention_chains.h"

namespace heddle::schedule {
namespace {

using ir::Builder;
using ir::Op;
using ir::ValueId;

Target machine_of(TargetKind kind) {
  Target target = kind == TargetKind::kCuda ? Target::cuda_h200(2) : Target();
  target.cpu.isa = CpuIsa::kAvx512;
  target.cpu.threads = 2;
  return target;
}

// Combines values with one of the last twenty; every other is a tanh.
ir::Graph reused_values(int nodes, uint32_t seed = 1) {
  ir::Graph graph;
  Builder b(graph);
  std::mt19937 random(seed);
  std::vector<ValueId> values{graph.parameter("x", {DType::kF32, {64, 256}}),
                              graph.parameter("y", {DType::kF32, {64, 256}})};
  const Op cheap[] = {Op::kAdd, Op::kMul, Op::kSub, Op::kMax};
  for (int i = 0; i < nodes / 2; ++i) {
    const size_t window = std::min<size_t>(values.size(), 20);
    const ValueId other = values[values.size() - 1 - random() % window];
    values.push_back(graph.emit(cheap[i % 4], {values.back(), other}, {}));
    values.push_back(graph.emit(Op::kTanh, {values.back()}, {}));
  }
  graph.output("z", values.back());
  return graph;
}

size_t count_in_texts(const ScheduledGroup& group, const Target& target, std::string_view what) {
  size_t count = 0;
  for (const ScheduledKernel& kernel : group.kernels) {
    const std::string text = codegen::emit(plan_kernel(kernel, target), target, nullptr).text;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  }
  return count;
}

TEST(RepeatedValues, AreHandedOverWhereKernelsAreCutForTheirSize) {
  const Target target = machine_of(TargetKind::kCuda);
  const ir::Graph graph = reused_values(400);
  const ScheduledGroup group = schedule(graph, testing::whole_graph(graph), target);
  EXPECT_GT(group.kernels.size(), 1);
  EXPECT_LE(count_in_texts(group, target, "tanh("), 300);
}

// Values of two shapes that are each other's transpose, reduced, reversed and read by many; with products between them.
ir::Graph random_reuse(uint32_t seed, bool products = false) {
  ir::Graph graph;
  std::mt19937 random(seed);
  std::vector<ValueId> rows{graph.parameter("x", {DType::kF32, {32, 48}}),
                            graph.parameter("y", {DType::kF32, {32, 48}})};
  std::vector<ValueId> columns{graph.parameter("z", {DType::kF32, {48, 32}})};
  std::vector<ValueId> weights;
  if (products) weights.push_back(graph.parameter("w", {DType::kF32, {48, 48}}));
  const auto recent = [&](const std::vector<ValueId>& of) {
    return of[of.size() - 1 - random() % std::min<size_t>(of.size(), 20)];
  };
  const Op functions[] = {Op::kTanh, Op::kExp, Op::kErf}, cheap[] = {Op::kAdd, Op::kMul, Op::kSub, Op::kMax};
  const ir::Attrs swap{{"perm", ir::Ints{1, 0}}};
  for (int i = 0; i < 150; ++i) {
    const auto kind = random() % 8;
    if (!weights.empty() && i % 15 == 14) {
      rows.push_back(Builder(graph).matmul(recent(rows), weights[0]));
    } else if (kind < 2) {
      rows.push_back(graph.emit(functions[random() % 3], {recent(rows)}, {}));
    } else if (kind < 4) {
      const ValueId a = recent(rows);
      rows.push_back(graph.emit(cheap[random() % 4], {a, recent(rows)}, {}));
    } else if (kind == 4) {
      columns.push_back(graph.emit(Op::kTranspose, {recent(rows)}, swap));
      columns.push_back(graph.emit(functions[random() % 3], {columns.back()}, {}));
    } else if (kind == 5) {
      rows.push_back(graph.emit(Op::kTranspose, {recent(columns)}, swap));
    } else if (kind == 6) {
      const ValueId sum = graph.emit(Op::kReduce, {recent(rows)}, {{"kind", "sum"}, {"dims", ir::Ints{1}}});
      rows.push_back(graph.emit(Op::kBroadcast, {sum}, {{"shape", ir::Ints{32, 48}}, {"dims", ir::Ints{0}}}));
    } else {
      rows.push_back(
          graph.emit(Op::kReverse, {recent(rows)}, {{"dims", ir::Ints{static_cast<int64_t>(random() % 2)}}}));
    }
  }
  for (int i = 0; i < 6; ++i) graph.output(fmt::format("o{}", i), recent(rows));
  graph.output("columns", recent(columns));
  return graph;
}

// HEDDLE_FUZZ_COUNT: how many graphs of each kind, from HEDDLE_FUZZ_SEED on.
TEST(RepeatedValues, CostlyOnesAreComputedAFewTimes) {
  const auto setting = [](const char* name, uint32_t otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : static_cast<uint32_t>(std::atoi(text));
  };
  const uint32_t first = setting("HEDDLE_FUZZ_SEED", 0), count = setting("HEDDLE_FUZZ_COUNT", 12);
  for (const TargetKind kind : {TargetKind::kCpu, TargetKind::kCuda}) {
    const Target target = machine_of(kind);
    for (uint32_t seed = first; seed < first + count; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", kind == TargetKind::kCpu ? "CPU" : "GPU", seed));
      const auto most_in_one = [&](const ir::Graph& graph) {
        return schedule(graph, testing::whole_graph(graph), target).most_repeats;
      };
      EXPECT_LE(most_in_one(ir::drop_dead(reused_values(80 + 40 * static_cast<int>(seed % 8), seed))), kMostRepeats);
      EXPECT_LE(most_in_one(ir::drop_dead(random_reuse(seed))), kMostRepeats);
      const ir::Graph whole = testing::optimized(random_reuse(seed, true), passes::Precision::kF32, target);
      for (const ir::Group& group : testing::grouped(whole, target).groups) {
        if (group.kind == ir::GroupKind::kStitch) {
          EXPECT_LE(schedule(whole, group, target).most_repeats, kMostRepeats);
        }
      }
    }
  }
}

// One function of many readers in other orders of elements, which no kernel computes alike.
TEST(RepeatedValues, AreHandedOverToManyReaders) {
  for (const TargetKind kind : {TargetKind::kCpu, TargetKind::kCuda}) {
    ir::Graph graph;
    Builder b(graph);
    const ValueId x = graph.parameter("x", {DType::kF32, {64, 64}});
    const ValueId t = graph.emit(Op::kTanh, {x}, {});
    ValueId sum = t;
    for (int64_t shift = 1; shift <= 8; ++shift) {
      const ValueId rest = graph.emit(
          Op::kSlice, {t}, {{"starts", ir::Ints{0, shift}}, {"limits", ir::Ints{64, 64}}, {"strides", ir::Ints{1, 1}}});
      const ValueId first = graph.emit(
          Op::kSlice, {t}, {{"starts", ir::Ints{0, 0}}, {"limits", ir::Ints{64, shift}}, {"strides", ir::Ints{1, 1}}});
      sum = b.add(sum, graph.emit(Op::kConcat, {rest, first}, {{"dim", int64_t{1}}}));
    }
    graph.output("y", sum);
    EXPECT_LE(schedule(graph, testing::whole_graph(graph), machine_of(kind)).most_repeats, kMostRepeats);
  }
}

// Steps that read eight computed places of the step before, as sampling an image by interpolation does: a kernel that
// goes back several steps would compute 8^n places and take minutes to compile.
TEST(RepeatedValues, AreHandedOverToManyGathers) {
  const Target target = machine_of(TargetKind::kCpu);
  ir::Graph graph;
  Builder b(graph);
  ValueId t = graph.parameter("x", {DType::kF32, {37}});
  std::vector<ValueId> places;
  for (int i = 0; i < 8; ++i) places.push_back(graph.parameter(fmt::format("i{}", i), {DType::kI32, {37}}));
  for (int step = 0; step < 8; ++step) {
    ValueId sum = b.gather(t, places[0], 0);
    for (size_t i = 1; i < places.size(); ++i) sum = b.add(sum, b.gather(t, places[i], 0));
    t = sum;
  }
  graph.output("y", t);
  for (const ScheduledKernel& kernel : schedule(graph, testing::whole_graph(graph), target).kernels) {
    EXPECT_LT(codegen::emit(plan_kernel(kernel, target), target, nullptr).text.size(), 32 << 10);
  }
}

}  // namespace
}  // namespace heddle::schedule
