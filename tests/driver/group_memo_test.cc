#include <gtest/gtest.h>

#include "driver/plan/group_kernels.h"
#include "driver/plan/number_table.h"
#include "driver/plan/plan_builder.h"

namespace heddle::driver {
namespace {

// Counts the kernels that are written.
class Counting : public codegen::NumberChoice {
 public:
  std::vector<bool> arguments(const codegen::NumberedText& kernel, bool) override {
    ++count;
    return std::vector<bool>(kernel.numbers.size(), false);
  }
  int count = 0;
};

Tensor weights(float first) {
  Tensor tensor(DType::kF32, {16, 16});
  for (float& value : tensor.mutable_values<float>()) value = first++;
  return tensor;
}

// Three products with weights of their own. What the first reads comes from outside, so it is no equal of the others.
ir::Graph layers(int64_t rows) {
  const auto dot = [](ir::Graph& g, ir::ValueId a, ir::ValueId b) {
    return g.emit(ir::Op::kDot, {a, b},
                  {{"lhs_batch", ir::Ints{}},
                   {"rhs_batch", ir::Ints{}},
                   {"lhs_contract", ir::Ints{1}},
                   {"rhs_contract", ir::Ints{0}}});
  };
  ir::Graph g;
  const ir::ValueId x = g.parameter("x", {DType::kF32, {rows, 16}});
  const ir::ValueId a = dot(g, x, g.constant(weights(1)));
  const ir::ValueId b = dot(g, a, g.constant(weights(2)));
  g.output("y", dot(g, b, g.constant(weights(3))));
  return g;
}

struct Built {
  BuiltPlan built;
  KernelSet kernels;
};

Built build(const ir::Graph& graph, const Target& target, Counting& written, GroupMemo* memo) {
  Built result;
  CompileReport report;
  BuildContext context{target, passes::FusionPolicy::kStitch, result.kernels, report};
  context.numbers = &written;
  context.groups = memo;
  result.built = build_plan(graph, context);
  return result;
}

TEST(GroupMemo, EqualLayersAreWrittenOnceAndKeepTheirWeights) {
  Counting written;
  const Built one = build(layers(4), Target::host_cpu(1), written, nullptr);
  EXPECT_EQ(written.count, 2);
  EXPECT_EQ(one.kernels.size(), 1u);
  const runtime::Plan& plan = *one.built.plan;
  ASSERT_EQ(plan.steps.size(), 3u);
  const auto& first = std::get<runtime::KernelStep>(plan.steps[1].action);
  const auto& second = std::get<runtime::KernelStep>(plan.steps[2].action);
  EXPECT_EQ(first.symbol, second.symbol);
  EXPECT_NE(plan.buffers[first.operands[1]].index, plan.buffers[second.operands[1]].index);
  EXPECT_EQ(first.operands[2], second.operands[0]);  // the result of the first is what the second reads
}

TEST(GroupMemo, WhatEarlierPlansHadIsNotWrittenAgainUnlessNumbersBecameArguments) {
  const Target target = Target::host_cpu(1);
  Counting written;
  GroupMemo memo;
  for (int plan = 0; plan < 3; ++plan) {
    memo.next_plan(0);
    EXPECT_EQ(build(layers(4), target, written, &memo).kernels.size(), 1u);
    EXPECT_EQ(written.count, 2);
  }
  memo.next_plan(1);
  build(layers(4), target, written, &memo);
  EXPECT_EQ(written.count, 4);
  for (int plan = 0; plan < 4; ++plan) memo.next_plan(1);  // plans that do not use it
  build(layers(4), target, written, &memo);
  EXPECT_EQ(written.count, 6);
}

TEST(NumberTable, ItsVersionIsAnotherWhereANumberBecomesAnArgument) {
  NumberTable table;
  const auto ask = [&](const char* pattern, const std::vector<int64_t>& numbers) {
    return table.arguments({pattern, numbers, std::vector<bool>(numbers.size())}, false);
  };
  ask("f", {1, 2});
  const uint64_t first = table.version();
  ask("f", {1, 2});
  ask("g", {3});
  EXPECT_EQ(table.version(), first);
  EXPECT_EQ(ask("f", {1, 5}), (std::vector<bool>{false, true}));
  EXPECT_NE(table.version(), first);
}

// "f" has one number that depends on the batch and one that two layers differ in; "large" costs nothing for its outer
// numbers; "other" is in one plan twice and in the other once.
TEST(NumberTable, KernelsTakeWhatDependsOnTheBatchAndNoMore) {
  NumberTable table;
  const auto watched = [&](int64_t batch) {
    table.watch();
    const auto ask = [&](const char* pattern, const std::vector<int64_t>& numbers, bool free = false) {
      const std::vector<bool> none(numbers.size());
      EXPECT_EQ(table.arguments({pattern, numbers, {true, false, false}}, free), none);
    };
    ask("f", {batch, 7, 1});
    ask("f", {2 * batch, 9, 1});
    ask("large", {3, 4, batch}, true);
    ask("large", {3, 5, batch}, true);
    for (int64_t i = 0; i < batch; ++i) ask("other", {batch, i, 0});
    return table.watched();
  };
  const auto plan = watched(2);
  const auto three = watched(3), four = watched(4);
  EXPECT_TRUE(table.learn(plan, {&three, &four}));
  const auto ask = [&](const char* pattern, const std::vector<int64_t>& numbers, bool free = false) {
    return table.arguments({pattern, numbers, {true, false, false}}, free);
  };
  const uint64_t learnt = table.version();
  EXPECT_EQ(ask("f", {16, 7, 1}), (std::vector<bool>{true, false, false}));
  EXPECT_EQ(ask("f", {5, 9, 1}), (std::vector<bool>{true, false, false}));
  EXPECT_EQ(ask("large", {8, 6, 9}, true), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(ask("other", {2, 1, 0}), (std::vector<bool>{false, false, false}));
  EXPECT_EQ(table.version(), learnt);
  EXPECT_EQ(ask("f", {16, 7, 2}), (std::vector<bool>{true, true, true})) << "of no form: whatever is known to differ";
}

}  // namespace
}  // namespace heddle::driver
