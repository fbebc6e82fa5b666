#include <gtest/gtest.h>

#include <thread>

#include "heddle/error.h"
#include "plans.h"
#include "runtime/cpu_executor.h"

namespace heddle::runtime {
namespace {

TEST(Executor, RunsKernelsOverArenaConstantsInputsAndOutputs) {
  for (int threads : {1, 2, 3}) {
    const CpuExecutor executor(small_plan(), pool(threads), nullptr);
    const Tensor x = floats({0, 1, 2, 3, 4, 5, 6, 7});
    const auto outputs = executor.run(std::span(&x, 1));
    ASSERT_EQ(outputs.size(), 2u);
    EXPECT_EQ(values_of(outputs[0]), (std::vector<float>{3, 6, 9, 12, 15, 18, 21, 24}));
    EXPECT_EQ(values_of(outputs[1]), values_of(x));
    EXPECT_NE(outputs[1].data(), x.data()) << "outputs belong to the caller";
  }
}

TEST(Executor, ConcurrentRunsDoNotShareBuffers) {
  const CpuExecutor executor(small_plan(), pool(2), nullptr);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto base = static_cast<float>(1000 * t);
      const Tensor x = floats(std::vector<float>(kSize, base));
      for (int round = 0; round < 300; ++round) {
        const auto outputs = executor.run(std::span(&x, 1));
        for (int64_t i = 0; i < kSize; ++i) {
          ASSERT_EQ(values_of(outputs[0])[static_cast<size_t>(i)], base + 1 + 2 * static_cast<float>(i + 1));
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(Executor, OutputsThatAreHeldKeepTheirValues) {
  std::vector<Tensor> held;
  {
    const CpuExecutor executor(small_plan(), pool(1), nullptr);
    const void* released = nullptr;
    for (int run = 0; run < 4; ++run) {
      const Tensor x = floats(std::vector<float>(kSize, static_cast<float>(run)));
      auto outputs = executor.run(std::span(&x, 1));
      if (released != nullptr) {
        EXPECT_EQ(outputs[0].data(), released) << "memory that was let go is used again";
      }
      released = nullptr;
      if (run % 2 == 0) {
        held.push_back(outputs[0]);
      } else {
        released = outputs[0].data();
      }
    }
  }
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(values_of(held[0])[0], 3);
  EXPECT_EQ(values_of(held[1])[0], 5);
}

TEST(Executor, ScratchBelongsToOneThread) {
  PlanWriter w;
  const int64_t n = 4096;
  const uint32_t x = w.input("x", DType::kF32, {n});
  const uint32_t y = w.output("y", DType::kF32, {n});
  w.kernel("through_scratch", {x, y}, n, 64 * 4);
  const CpuExecutor executor(w.finish(), pool(4), nullptr);
  Tensor input(DType::kF32, {n});
  for (int64_t i = 0; i < n; ++i) input.mutable_values<float>()[static_cast<size_t>(i)] = static_cast<float>(i);
  const auto outputs = executor.run(std::span(&input, 1));
  EXPECT_EQ(values_of(outputs[0]), values_of(input));
}

struct LoopCase {
  int64_t trip;
  bool condition;
  float expected;
  std::vector<float> stacked;
};

TEST(Executor, LoopsStopByTripOrConditionAndPassStatesWithoutCopies) {
  const int64_t bound = 6;
  const CpuExecutor executor(loop_plan(bound), pool(), nullptr);
  const std::vector<LoopCase> cases = {
      {0, true, 1, {0, 0, 0, 0, 0, 0}},  {3, false, 1, {0, 0, 0, 0, 0, 0}}, {1, true, 1, {1, 0, 0, 0, 0, 0}},
      {2, true, 2, {1, 2, 0, 0, 0, 0}},  {3, true, 4, {1, 2, 4, 0, 0, 0}},  {6, true, 7, {1, 2, 4, 7, 0, 0}},
      {99, true, 7, {1, 2, 4, 7, 0, 0}}, {-3, true, 1, {0, 0, 0, 0, 0, 0}},
  };
  for (const LoopCase& c : cases) {
    const Tensor inputs[] = {scalar_i64(c.trip), scalar_bool(c.condition), scalar_f32(1)};
    const auto outputs = executor.run(inputs);
    EXPECT_EQ(values_of(outputs[0])[0], c.expected) << "trip " << c.trip;
    EXPECT_EQ(values_of(outputs[1]), c.stacked) << "trip " << c.trip;
  }
}

// Two states that alternate between their spare and their final buffer, for odd and even numbers of iterations.
TEST(Executor, StatesWithBuffersOfTheirOwn) {
  PlanWriter body;
  const uint32_t unused = body.input("i", DType::kI64, {});
  static_cast<void>(unused);
  const uint32_t condition = body.input("c", DType::kBool, {});
  const uint32_t a = body.input("a", DType::kF32, {kSize});
  const uint32_t b = body.input("b", DType::kF32, {kSize});
  const uint32_t step = body.input("step", DType::kF32, {kSize});
  body.output_of("c", condition);
  const uint32_t a2 = body.output("a", DType::kF32, {kSize});
  body.output_of("b", b);  // unchanged: passed on by pointer
  body.kernel("axpy", {a, step, a2}, kSize);
  static_cast<void>(b);
  for (int64_t trip : {0, 1, 2, 5, 8}) {
    PlanWriter outer;
    LoopStep loop;
    loop.body = std::make_shared<const Plan>(body.plan);
    loop.trip = outer.constant(scalar_i64(trip));
    loop.condition = outer.constant(scalar_bool(true));
    loop.states = {outer.input("a", DType::kF32, {kSize}), outer.input("b", DType::kF32, {kSize})};
    loop.invariants = {outer.constant(floats(std::vector<float>(kSize, 0.5f)))};
    loop.final_states = {outer.output("a", DType::kF32, {kSize}), outer.output("b", DType::kF32, {kSize})};
    loop.workspace = outer.arena(DType::kU8, {workspace_bytes(loop)});
    outer.step(loop);
    const CpuExecutor executor(outer.finish(), pool(), nullptr);
    const Tensor inputs[] = {floats(std::vector<float>(kSize, 3)), floats(std::vector<float>(kSize, 7))};
    const auto outputs = executor.run(inputs);
    EXPECT_EQ(values_of(outputs[0]), std::vector<float>(kSize, 3 + static_cast<float>(trip)));
    EXPECT_EQ(values_of(outputs[1]), values_of(inputs[1]));
    EXPECT_EQ(values_of(inputs[0]), std::vector<float>(kSize, 3)) << "inputs are never written";
  }
}

TEST(Executor, BranchesTakeOneBody) {
  const auto body = [](const std::string& kernel) {
    PlanWriter w;
    const uint32_t x = w.input("x", DType::kF32, {kSize});
    if (kernel.empty()) {
      w.output_of("y", x);
    } else {
      const uint32_t y = w.output("y", DType::kF32, {kSize});
      w.kernel(kernel, {x, y}, kSize);
    }
    return std::make_shared<const Plan>(w.plan);
  };
  PlanWriter outer;
  BranchStep branch;
  branch.then_body = body("increment");
  branch.else_body = body("");
  branch.condition = outer.input("condition", DType::kBool, {});
  branch.captured = {outer.input("x", DType::kF32, {kSize})};
  branch.results = {outer.output("y", DType::kF32, {kSize})};
  branch.workspace = outer.arena(DType::kU8, {workspace_bytes(branch)});
  outer.step(branch);
  const CpuExecutor executor(outer.finish(), pool(), nullptr);
  for (bool condition : {true, false, true}) {
    const Tensor inputs[] = {scalar_bool(condition), floats(std::vector<float>(kSize, 2))};
    EXPECT_EQ(values_of(executor.run(inputs)[0])[3], condition ? 3 : 2);
  }
}

TEST(Executor, ObserverSeesWhatEachStepMade) {
  const CpuExecutor executor(small_plan(), pool(), nullptr);
  const Tensor x = floats(std::vector<float>(kSize, 1));
  std::vector<float> seen;
  executor.run(std::span(&x, 1), [&](size_t step, const std::function<Tensor(uint32_t)>& read) {
    if (step == 0) seen = values_of(read(2));
  });
  EXPECT_EQ(seen, std::vector<float>(kSize, 2));
}

TEST(Executor, AnEmptyTensorIsNoSpecialCase) {
  PlanWriter w;
  const uint32_t x = w.input("x", DType::kF32, {0});
  const uint32_t y = w.output("y", DType::kF32, {0});
  w.kernel("increment", {x, y}, 0);
  const CpuExecutor executor(w.finish(), pool(), nullptr);
  const Tensor input(DType::kF32, {0});
  EXPECT_EQ(executor.run(std::span(&input, 1))[0].size(), 0);
}

TEST(Executor, AMissingKernelIsADamagedPlan) {
  PlanWriter w;
  const uint32_t x = w.input("x", DType::kF32, {kSize});
  w.kernel("no_such_kernel", {x, w.output("y", DType::kF32, {kSize})}, 1);
  const auto with = w.finish();
  w.plan.library.clear();
  for (const auto& plan : {with, w.finish(false)}) {
    try {
      const CpuExecutor executor(plan, pool(), nullptr);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDamagedArtefact);
    }
  }
}

}  // namespace
}  // namespace heddle::runtime
