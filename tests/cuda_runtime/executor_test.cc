#include "runtime/cuda/executor.h"

#include <gmock/gmock.h>

#include <thread>

#include "cuda_plans.h"
#include "heddle/error.h"
#include "runtime/cpu_executor.h"

namespace heddle::runtime {
namespace {

using testing::HasSubstr;

class CudaExecutorTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "there is no GPU";
  }

  static CudaExecutor executor(const std::shared_ptr<const Plan>& plan,
                               std::shared_ptr<const Interpreter> interpreter = nullptr) {
    return CudaExecutor(plan, pool(), std::move(interpreter), 0);
  }

  // Runs a plan on both and compares.
  static size_t same_as_cpu(const std::shared_ptr<const Plan>& plan, const std::vector<std::vector<Tensor>>& runs) {
    const CpuExecutor cpu(plan, pool(), nullptr);
    const CudaExecutor gpu = executor(on_gpu(*plan));
    for (size_t r = 0; r < runs.size(); ++r) {
      const auto expected = cpu.run(runs[r]), actual = gpu.run(runs[r]);
      const auto observed = gpu.run(runs[r], [](size_t, const auto&) {});
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(values_of(actual[i]), values_of(expected[i])) << "run " << r << " output " << i;
        EXPECT_EQ(values_of(observed[i]), values_of(expected[i])) << "step by step, run " << r << " output " << i;
      }
    }
    return gpu.graphs();
  }
};

TEST_F(CudaExecutorTest, APlanOfKernelsIsOneGraph) {
  const CudaExecutor gpu = executor(on_gpu(*small_plan()));
  EXPECT_EQ(gpu.graphs(), 1u);
  for (int round = 0; round < 3; ++round) {
    const Tensor x = floats({0, 1, 2, 3, 4, 5, 6, static_cast<float>(7 + round)});
    const auto outputs = gpu.run(std::span(&x, 1));
    EXPECT_EQ(values_of(outputs[0]), (std::vector<float>{3, 6, 9, 12, 15, 18, 21, static_cast<float>(24 + round)}));
    EXPECT_EQ(values_of(outputs[1]), values_of(x));
    EXPECT_NE(outputs[1].data(), x.data()) << "outputs belong to the caller";
  }
  const Tensor x = floats(std::vector<float>(kSize, 0));
  EXPECT_EQ(gpu.device_seconds(std::span(&x, 1), 4).size(), 4u);
  EXPECT_EQ(gpu.step_seconds(std::span(&x, 1), 2).size(), gpu.plan().steps.size());
  EXPECT_EQ(gpu.device_seconds(std::span(&x, 1), 3, true).size(), 3u);
}

TEST_F(CudaExecutorTest, ConcurrentRunsOfOneModelAndOfSeveral) {
  const CudaExecutor one = executor(on_gpu(*small_plan())), two = executor(on_gpu(*small_plan()));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const CudaExecutor& gpu = t % 2 == 0 ? one : two;
      for (int round = 0; round < 40; ++round) {
        const auto base = static_cast<float>(1000 * t + round);
        const Tensor x = floats(std::vector<float>(kSize, base));
        const auto outputs = gpu.run(std::span(&x, 1));
        for (int64_t i = 0; i < kSize; ++i) {
          ASSERT_EQ(values_of(outputs[0])[static_cast<size_t>(i)], base + 1 + 2 * static_cast<float>(i + 1));
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_F(CudaExecutorTest, LoopsWithConditionsThatTheBodyMakes) {
  std::vector<std::vector<Tensor>> runs;
  for (const auto& [trip, condition] :
       {std::pair{0, true}, {3, false}, {1, true}, {2, true}, {3, true}, {6, true}, {99, true}, {-3, true}}) {
    runs.push_back({scalar_i64(trip), scalar_bool(condition), scalar_f32(1)});
  }
  same_as_cpu(loop_plan(6), runs);
}

// A body whose condition is passed on; trip and condition are constants.
std::shared_ptr<const Plan> counted_loop(int64_t trip, int64_t bound) {
  PlanWriter body;
  const uint32_t index = body.input("i", DType::kI64, {});
  const uint32_t condition = body.input("c", DType::kBool, {});
  const uint32_t state = body.input("s", DType::kF32, {});
  const uint32_t wide = body.input("w", DType::kF32, {kSize});
  const uint32_t step = body.input("step", DType::kF32, {kSize});
  body.output_of("c", condition);
  body.plan.outputs.push_back({"s", DType::kF32, {}, 0});  // lives in its slice
  const uint32_t wide2 = body.output("w", DType::kF32, {kSize});
  body.plan.buffers[wide2].index = 2;
  body.output_of("s_slice", 0);
  body.plan.buffers.push_back({Place::kOutput, 3, 0, DType::kF32, {}, 4, ""});
  const auto slice = static_cast<uint32_t>(body.plan.buffers.size() - 1);
  body.plan.outputs[1].buffer = body.plan.outputs[3].buffer = slice;
  body.plan.outputs[3].dtype = DType::kF32;
  body.plan.outputs[3].shape = {};
  body.kernel("add_index", {state, index, slice}, 1);
  body.kernel("axpy", {wide, step, wide2}, kSize);

  PlanWriter outer;
  LoopStep loop;
  loop.body = std::make_shared<const Plan>(body.plan);
  loop.trip = outer.constant(scalar_i64(trip));
  loop.condition = outer.constant(scalar_bool(true));
  loop.states = {outer.input("s", DType::kF32, {}), outer.input("w", DType::kF32, {kSize})};
  loop.invariants = {outer.constant(floats(std::vector<float>(kSize, 0.5f)))};
  loop.final_states = {outer.output("s", DType::kF32, {}), outer.output("w", DType::kF32, {kSize})};
  loop.stacked = {outer.output("stacked", DType::kF32, {bound})};
  loop.trip_bound = bound;
  loop.workspace = outer.arena(DType::kU8, {workspace_bytes(loop)});
  outer.step(loop);
  return outer.finish();
}

// Slices of 4 bytes lie where kernels could not be told to write.
TEST_F(CudaExecutorTest, LoopsOfKnownLengthAreUnrolledIntoOneGraph) {
  for (const int64_t trip : {0, 1, 2, 5, 8}) {
    const size_t graphs = same_as_cpu(counted_loop(trip, 8), {{scalar_f32(1), floats(std::vector<float>(kSize, 3))},
                                                              {scalar_f32(-2), floats(std::vector<float>(kSize, 0))}});
    EXPECT_EQ(graphs, 1u) << trip;
  }
}

TEST_F(CudaExecutorTest, LongLoopsAreNot) {
  const int64_t trip = CudaNumbers::kMost + 3;
  same_as_cpu(counted_loop(trip, trip), {{scalar_f32(1), floats(std::vector<float>(kSize, 3))}});
}

TEST_F(CudaExecutorTest, BranchesTakeOneBody) {
  const auto body = [](const std::string& kernel) {
    PlanWriter w;
    const uint32_t x = w.input("x", DType::kF32, {kSize});
    if (kernel.empty()) {
      w.output_of("y", x);
    } else {
      w.kernel(kernel, {x, w.output("y", DType::kF32, {kSize})}, kSize);
    }
    return std::make_shared<const Plan>(w.plan);
  };
  for (const bool constant : {false, true}) {
    PlanWriter outer;
    BranchStep branch;
    branch.then_body = body("increment");
    branch.else_body = body("");
    branch.condition = constant ? outer.constant(scalar_bool(true)) : outer.input("condition", DType::kBool, {});
    branch.captured = {outer.input("x", DType::kF32, {kSize})};
    branch.results = {outer.output("y", DType::kF32, {kSize})};
    branch.workspace = outer.arena(DType::kU8, {workspace_bytes(branch)});
    outer.step(branch);
    const Tensor x = floats(std::vector<float>(kSize, 2));
    if (constant) {
      EXPECT_EQ(same_as_cpu(outer.finish(), {{x}}), 1u);
    } else {
      same_as_cpu(outer.finish(), {{scalar_bool(true), x}, {scalar_bool(false), x}, {scalar_bool(true), x}});
    }
  }
}

// Doubles each element on the host, and keeps the first element of each call.
class Doubler : public Interpreter {
 public:
  mutable std::vector<float> seen;

  std::shared_ptr<const void> prepare(const std::string& text, std::span<const ValueType>,
                                      std::span<const ValueType>) const override {
    return std::make_shared<std::string>(text);
  }
  std::vector<Tensor> run(const void*, std::vector<Tensor> parameters) const override {
    std::vector<float> values = values_of(parameters[0]);
    seen.push_back(values[0]);
    for (float& value : values) {
      if (value == 99) throw Error(ErrorCode::kValueOutOfRange, "doubler", "99");
      value *= 2;
    }
    return {floats(values)};
  }
};

TEST_F(CudaExecutorTest, ReferenceStepsRunOnTheHostBetweenGraphs) {
  PlanWriter w;
  const uint32_t x = w.input("x", DType::kF32, {kSize}), c = w.constant(floats({1, 2, 3, 4, 5, 6, 7, 8}));
  const uint32_t a = w.arena(DType::kF32, {kSize}), b = w.arena(DType::kF32, {kSize}),
                 d = w.arena(DType::kF32, {kSize});
  const uint32_t y = w.output("y", DType::kF32, {kSize});
  w.kernel("increment", {x, a}, kSize);
  w.step(ReferenceStep{"", {a}, {b}});
  w.step(ReferenceStep{"", {c}, {d}});  // of a constant
  w.kernel("axpy", {b, d, y}, kSize);
  const CudaExecutor gpu = executor(on_gpu(*w.finish()), std::make_shared<Doubler>());
  EXPECT_EQ(gpu.graphs(), 2u);
  const auto run = [&](float value) {
    const Tensor input = floats(std::vector<float>(kSize, value));
    return values_of(gpu.run(std::span(&input, 1))[0]);
  };
  EXPECT_EQ(run(1), (std::vector<float>{8, 12, 16, 20, 24, 28, 32, 36}));
  EXPECT_THROW(run(98), Error);
  EXPECT_EQ(run(2), (std::vector<float>{10, 14, 18, 22, 26, 30, 34, 38})) << "after an error of another run";
}

TEST_F(CudaExecutorTest, RunsAreRepeatedOnInputsThatAreCopiedOnce) {
  PlanWriter w;
  const uint32_t x = w.input("x", DType::kF32, {kSize}), a = w.arena(DType::kF32, {kSize});
  const uint32_t y = w.output("y", DType::kF32, {kSize});
  w.kernel("increment", {x, a}, kSize);
  w.step(ReferenceStep{"", {a}, {y}});
  const auto doubler = std::make_shared<Doubler>();
  const CudaExecutor gpu = executor(on_gpu(*w.finish()), doubler);
  Tensor input = floats(std::vector<float>(kSize, 4));
  gpu.repeat(std::span(&input, 1), [&](const Executor::Repeat& run) {
    run(2);
    EXPECT_EQ(doubler->seen, (std::vector<float>{5, 5})) << "they are done when the call returns";
    std::fill_n(static_cast<float*>(input.mutable_data()), kSize, 7.0F);
    run(3);
  });
  EXPECT_EQ(doubler->seen, (std::vector<float>{5, 5, 5, 5, 5}));
  gpu.repeat(std::span(&input, 1), [](const Executor::Repeat& run) { run(1); });
  EXPECT_EQ(doubler->seen.back(), 8);
}

TEST_F(CudaExecutorTest, ObserverSeesWhatEachStepMade) {
  const CudaExecutor gpu = executor(on_gpu(*small_plan()));
  const Tensor x = floats(std::vector<float>(kSize, 1));
  std::vector<size_t> steps;
  std::vector<float> made, constant, input;
  gpu.run(std::span(&x, 1), [&](size_t step, const std::function<Tensor(uint32_t)>& read) {
    steps.push_back(step);
    if (step > 0) return;
    input = values_of(read(0));
    constant = values_of(read(1));
    made = values_of(read(2));
  });
  EXPECT_EQ(steps, (std::vector<size_t>{0, 1}));
  EXPECT_EQ(input, values_of(x));
  EXPECT_EQ(constant, (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(made, std::vector<float>(kSize, 2));
}

TEST_F(CudaExecutorTest, CountersAreZeroWhenAStepBegins) {
  PlanWriter w;
  const uint32_t first = w.output("a", DType::kF32, {kSize}), second = w.output("b", DType::kF32, {kSize});
  Plan plan = *on_gpu(*w.finish(false));
  for (const uint32_t output : {first, second}) {
    CudaStep step;
    step.operands = {output};
    step.counter_bytes = 4;
    CudaLaunch take = launch_of("take", 1, 3), count = launch_of("count", 2, kSize);
    take.pointers = {{0, 0, 1}};
    step.launches = {take, take, count};
    plan.steps.push_back({step, "", "", 0});
  }
  validate(plan);
  const CudaExecutor gpu = executor(std::make_shared<const Plan>(plan));
  for (int round = 0; round < 2; ++round) {
    for (const Tensor& output : gpu.run({})) EXPECT_EQ(values_of(output), std::vector<float>(kSize, 6));
  }
}

TEST_F(CudaExecutorTest, AnEmptyTensorIsNoSpecialCase) {
  PlanWriter w;
  const uint32_t x = w.input("x", DType::kF32, {0});
  w.kernel("increment", {x, w.output("y", DType::kF32, {0})}, 0);
  const CudaExecutor gpu = executor(on_gpu(*w.finish()));
  const Tensor input(DType::kF32, {0});
  EXPECT_EQ(gpu.run(std::span(&input, 1))[0].size(), 0);
}

// --- errors --------------------------------------------------------------------------------------------------------

std::string error_of(const std::function<void()>& action, ErrorCode code) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST_F(CudaExecutorTest, AMissingKernelIsADamagedPlan) {
  Plan plan = *on_gpu(*small_plan());
  plan.cubins[0].symbols = {"axpy"};
  error_of([&] { executor(std::make_shared<const Plan>(plan)); }, ErrorCode::kDamagedArtefact);
  plan.cubins.clear();
  error_of([&] { executor(std::make_shared<const Plan>(plan)); }, ErrorCode::kDamagedArtefact);
  error_of([&] { executor(small_plan()); }, ErrorCode::kDamagedArtefact);
}

// Its blocks would wait for each other for ever.
TEST_F(CudaExecutorTest, AGridThatDoesNotFitIsADamagedPlan) {
  Plan plan = *on_gpu(*small_plan());
  CudaLaunch& launch = std::get<CudaStep>(plan.steps[1].action).launches.at(0);
  launch.cooperative = true;
  EXPECT_NO_THROW(executor(std::make_shared<const Plan>(plan)));
  launch.grid[0] = 1 << 20;
  EXPECT_THAT(error_of([&] { executor(std::make_shared<const Plan>(plan)); }, ErrorCode::kDamagedArtefact),
              HasSubstr("1048576 blocks wait for each other"));
}

TEST_F(CudaExecutorTest, AGpuThatIsNotThere) {
  const auto plan = on_gpu(*small_plan());
  EXPECT_THAT(error_of([&] { CudaExecutor(plan, pool(), nullptr, 77); }, ErrorCode::kDevice), HasSubstr("cuda:77"));
}

// y = ones of `bytes`, which take as much memory again on the device.
std::shared_ptr<const Plan> large_plan(int64_t bytes) {
  PlanWriter w;
  w.output("y", DType::kF32, {bytes / 4});
  Plan plan = *on_gpu(*w.finish(false));
  CudaLaunch fill = launch_of("fill", 1, 32);
  fill.arguments.push_back({8, 0, 0, 0});
  plan.steps.push_back({CudaStep{{fill}, {0}, 0}, "", "", 0});
  return std::make_shared<const Plan>(plan);
}

TEST_F(CudaExecutorTest, TooLittleMemoryIsSaidInBytes) {
  const int64_t more = int64_t{1} << 44;
  const std::string why = error_of([&] { executor(large_plan(more)); }, ErrorCode::kOutOfMemory);
  EXPECT_THAT(why, HasSubstr("17592186044416 bytes"));
  EXPECT_THAT(why, HasSubstr("are free"));
}

TEST_F(CudaExecutorTest, RunsWaitForMemoryThatOthersHold) {
  if (!is_emulated()) GTEST_SKIP() << "a GPU has more memory than a test should take";
  const Variable memory("HEDDLE_EMULATED_MEMORY", std::to_string(40 << 20));
  const CudaExecutor gpu = executor(large_plan(24 << 20));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 3; ++round) EXPECT_EQ(values_of(gpu.run({})[0])[7], 1);
    });
  }
  for (auto& thread : threads) thread.join();
  error_of([&] { executor(large_plan(24 << 20)); }, ErrorCode::kOutOfMemory);
}

TEST_F(CudaExecutorTest, WeightsThatDoNotFitDoOnceThereIsRoom) {
  if (!is_emulated()) GTEST_SKIP() << "a GPU has more memory than a test should take";
  constexpr int64_t kFloats = int64_t{4} << 20;
  PlanWriter w;
  const uint32_t c = w.constant(floats(std::vector<float>(kFloats, 3)));
  w.kernel("increment", {c, w.output("y", DType::kF32, {kSize})}, kSize);
  const auto plan = on_gpu(*w.finish());
  {
    const Variable memory("HEDDLE_EMULATED_MEMORY", std::to_string(12 << 20));
    const std::string why = error_of([&] { executor(plan); }, ErrorCode::kOutOfMemory);
    EXPECT_THAT(why, HasSubstr("the weights needs 16777216 bytes"));
    EXPECT_THAT(why, HasSubstr("are free"));
  }
  EXPECT_EQ(values_of(executor(plan).run({})[0]), std::vector<float>(kSize, 4));
}

// There is room for one run, and each that fails gives it up.
TEST_F(CudaExecutorTest, RunsThatFailMakeRoomForOthers) {
  if (!is_emulated()) GTEST_SKIP() << "a GPU has more memory than a test should take";
  const Variable memory("HEDDLE_EMULATED_MEMORY", std::to_string(40 << 20));
  PlanWriter w;
  const uint32_t x = w.input("x", DType::kF32, {kSize}), a = w.arena(DType::kF32, {kSize});
  const uint32_t b = w.arena(DType::kF32, {int64_t{6} << 20});
  w.kernel("increment", {x, a}, kSize);
  w.kernel("increment", {a, b}, kSize);
  const uint32_t d = w.arena(DType::kF32, {kSize});
  w.step(ReferenceStep{"", {a}, {d}});
  w.kernel("increment", {d, w.output("y", DType::kF32, {kSize})}, kSize);
  const CudaExecutor gpu = executor(on_gpu(*w.finish()), std::make_shared<Doubler>());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 6; ++round) {
        const bool fails = (round + t) % 2 == 0;
        const Tensor input = floats(std::vector<float>(kSize, fails ? 98.0f : static_cast<float>(t)));
        if (fails) {
          EXPECT_THROW(gpu.run(std::span(&input, 1)), Error);
        } else {
          EXPECT_EQ(values_of(gpu.run(std::span(&input, 1))[0]),
                    std::vector<float>(kSize, static_cast<float>(2 * t + 3)));
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

// On a GPU the driver gives a process no context any more after this.
void lose_the_gpu() {
  const auto executor = [](const std::shared_ptr<const Plan>& plan) { return CudaExecutor(plan, pool(), nullptr, 0); };
  Plan plan = *on_gpu(*small_plan());
  std::optional<Variable> fault;
  if (!is_emulated()) std::get<CudaStep>(plan.steps[1].action).launches = {launch_of("crash", 1, 1)};
  {
    const CudaExecutor good = executor(on_gpu(*small_plan())), bad = executor(std::make_shared<const Plan>(plan));
    const Tensor x = floats(std::vector<float>(kSize, 1));
    EXPECT_EQ(values_of(good.run(std::span(&x, 1))[0])[0], 4);
    if (is_emulated()) fault.emplace("HEDDLE_EMULATED_FAULT", "lost");
    EXPECT_THAT(error_of([&] { bad.run(std::span(&x, 1)); }, ErrorCode::kDevice), HasSubstr("lost in"));
    EXPECT_THAT(error_of([&] { good.run(std::span(&x, 1)); }, ErrorCode::kDevice), HasSubstr("lost earlier"));
    EXPECT_THAT(error_of([&] { executor(on_gpu(*small_plan())); }, ErrorCode::kDevice), HasSubstr("lost earlier"));
  }
  const std::string why = error_of([&] { executor(on_gpu(*small_plan())); }, ErrorCode::kDevice);
  EXPECT_THAT(why, HasSubstr("lost earlier in this process"));
  EXPECT_THAT(why, HasSubstr("Start the process again"));
}

TEST_F(CudaExecutorTest, LostInTheMiddleOfARun) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a process of its own
  EXPECT_EXIT(
      {
        lose_the_gpu();
        std::exit(testing::Test::HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace heddle::runtime
