// What is collected of plans that run: on the emulator with its stand-in for CUPTI, and on a GPU.
#include "profile/gpu/collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <thread>

#include "driver/report/step_times.h"
#include "profile/gpu/activity.h"
#include "profile/gpu/cupti_library.h"
#include "runtime/cuda/executor.h"
#include "runtime/cuda/step_scope.h"
#include "tests/cuda_runtime/cuda_plans.h"
#include "tests/error_of.h"

namespace heddle::profile {
namespace {

using runtime::CudaExecutor;
using runtime::Variable;
using testing::HasSubstr;
using Kind = GpuOperation::Kind;

constexpr size_t kSteps = 40;

// Steps that share one kernel, with another between them now and then.
std::shared_ptr<const runtime::Plan> chain() {
  runtime::PlanWriter w;
  const uint32_t x = w.input("x", DType::kF32, {runtime::kSize});
  const uint32_t c = w.constant(runtime::floats({1, 2, 3, 4, 5, 6, 7, 8}));
  uint32_t at = x;
  for (size_t step = 0; step < kSteps; ++step) {
    const uint32_t next =
        step + 1 == kSteps ? w.output("y", DType::kF32, {runtime::kSize}) : w.arena(DType::kF32, {runtime::kSize});
    if (step % 10 == 9) {
      w.kernel("axpy", {at, c, next}, runtime::kSize);
    } else {
      w.kernel("increment", {at, next}, runtime::kSize);
    }
    at = next;
  }
  return runtime::on_gpu(*w.finish());
}

std::string symbol_of(uint64_t step) {
  return step % 10 == 9 ? "axpy" : "increment";
}

class CollectorTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!runtime::has_gpu()) GTEST_SKIP() << "there is no GPU";
    if (!runtime::is_emulated()) {
      try {
        cupti::library();
      } catch (const Error& error) {
        GTEST_SKIP() << error.what();
      }
    }
#ifdef HEDDLE_STAND_IN
    if (runtime::is_emulated()) stand_in_.emplace("HEDDLE_CUPTI", HEDDLE_STAND_IN);
#endif
  }
  std::optional<Variable> stand_in_;
  static std::vector<GpuOperation> kernels_of(const std::vector<GpuOperation>& operations) {
    std::vector<GpuOperation> kernels;
    for (const GpuOperation& o : operations) {
      if (o.kind == Kind::kKernel) kernels.push_back(o);
    }
    return kernels;
  }
  // Of runs of the chain, from the collector's start to its end.
  struct Collected {
    std::vector<GpuOperation> kernels;
    GpuStats stats;
  };
  static Collected run_chain(int runs) {
    const auto collector = GpuCollector::start({.context = driver::step_context});
    const CudaExecutor executor(chain(), runtime::pool(), nullptr, 0);
    const Tensor x = runtime::floats({0, 1, 2, 3, 4, 5, 6, 7});
    for (int i = 0; i < runs; ++i) executor.run(std::span(&x, 1));
    const GpuStats stats = collector->stop();
    return {kernels_of(collector->take()), stats};
  }
};

// Faults of CUPTI, which the stand-in alone can be told to have.
class FaultyCollectorTest : public CollectorTest {
 protected:
  void SetUp() override {
    CollectorTest::SetUp();
    if (!IsSkipped() && !runtime::is_emulated()) GTEST_SKIP() << "the stand-in alone can do this";
  }
};

TEST_F(CollectorTest, KernelsOfAGraphAreTiedToTheirSteps) {
  const Collected c = run_chain(3);
  ASSERT_EQ(c.kernels.size(), 3 * kSteps);
  for (size_t i = 0; i < c.kernels.size(); ++i) {
    const GpuOperation& kernel = c.kernels[i];
    ASSERT_EQ(kernel.captured_context, i % kSteps + 1);
    EXPECT_EQ(*kernel.name, symbol_of(i % kSteps));
    EXPECT_NE(kernel.graph_node, 0u);
    EXPECT_EQ(kernel.correlation, c.kernels[i / kSteps * kSteps].correlation) << "one launch of a graph";
    EXPECT_NE(kernel.launched, 0u);
    EXPECT_EQ(kernel.block[0], static_cast<uint16_t>(runtime::kSize));
  }
  EXPECT_EQ(c.stats.dropped + c.stats.lost + c.stats.unknown_times + c.stats.malformed + c.stats.lost_contexts, 0u);
}

TEST_F(CollectorTest, CopiesWaitsAndAllocationsAreSeen) {
  const auto collector = GpuCollector::start({.context = [] { return uint64_t{9}; }});
  {
    const auto context = runtime::CudaContext::of_device(0);
    runtime::CudaBuffer buffer(*context, 1000);
    std::vector<uint8_t> host(1000);
    buffer.write(host.data(), host.size());
    buffer.read(host.data(), host.size());
    context->synchronize();
  }
  collector->stop();
  std::map<Kind, std::vector<GpuOperation>> by_kind;
  for (const GpuOperation& operation : collector->take()) by_kind[operation.kind].push_back(operation);
  ASSERT_EQ(by_kind[Kind::kCopy].size(), 2u);
  const GpuOperation &in = by_kind[Kind::kCopy][0], &out = by_kind[Kind::kCopy][1];
  EXPECT_EQ(in.direction, GpuOperation::Direction::kHostToDevice);
  EXPECT_EQ(out.direction, GpuOperation::Direction::kDeviceToHost);
  EXPECT_EQ(in.bytes, 1000u);
  EXPECT_TRUE(in.pageable);
  EXPECT_EQ(in.context, 9u);
  const auto allocation = std::find_if(by_kind[Kind::kAllocate].begin(), by_kind[Kind::kAllocate].end(),
                                       [](const GpuOperation& o) { return o.bytes >= 1000; });
  EXPECT_NE(allocation, by_kind[Kind::kAllocate].end());
  EXPECT_GE(by_kind[Kind::kFree].size(), 1u);
  EXPECT_GE(by_kind[Kind::kSync].size(), 1u);
}

thread_local uint64_t number_of_thread = 0;

TEST_F(CollectorTest, ThreadsLaunchAtOnce) {
  const auto collector = GpuCollector::start({.context = [] { return number_of_thread; }});
  const CudaExecutor executor(chain(), runtime::pool(), nullptr, 0);
  constexpr uint64_t kThreads = 4, kRuns = 10;
  std::vector<std::thread> threads;
  for (uint64_t t = 1; t <= kThreads; ++t) {
    threads.emplace_back([&, t] {
      number_of_thread = t;
      const Tensor x = runtime::floats({0, 1, 2, 3, 4, 5, 6, 7});
      for (uint64_t run = 0; run < kRuns; ++run) executor.run(std::span(&x, 1));
    });
  }
  for (std::thread& thread : threads) thread.join();
  collector->stop();
  std::map<uint64_t, size_t> kernels;
  for (const GpuOperation& kernel : kernels_of(collector->take())) ++kernels[kernel.context];
  for (uint64_t t = 1; t <= kThreads; ++t) EXPECT_EQ(kernels[t], kRuns * kSteps) << t;
  EXPECT_EQ(kernels.size(), kThreads);
}

TEST_F(CollectorTest, EachStepOfARunHasItsTime) {
  const auto collector = GpuCollector::start({.context = driver::step_context});
  const CudaExecutor executor(chain(), runtime::pool(), nullptr, 0);
  const std::vector<Tensor> inputs = {runtime::floats({0, 1, 2, 3, 4, 5, 6, 7})};
  executor.run(inputs);
  const driver::StepTimes times = driver::time_by_records(executor, inputs, *collector);
  EXPECT_EQ(times.runs, 50);
  ASSERT_EQ(times.steps.size(), kSteps);
  for (size_t step = 0; step < kSteps; ++step) {
    EXPECT_GT(times.kernels[step], 0);
    EXPECT_LE(times.steps[step], times.kernels[step]);
    EXPECT_EQ(times.launches[step], 1);
  }
  ASSERT_EQ(times.one_run.size(), kSteps);
  for (size_t step = 0; step < kSteps; ++step) {
    EXPECT_EQ(times.one_run[step].step, step);
    if (step > 0) {
      EXPECT_GT(times.one_run[step].start, times.one_run[step - 1].start);
    }
  }
  EXPECT_GE(times.rest, 0);
}

TEST_F(FaultyCollectorTest, NodesWithoutNumbersAreTiedByTheirOrder) {
  const auto times_with = [](const char* fault) {
    const Variable faults("HEDDLE_EMULATED_CUPTI", fault);
    const auto collector = GpuCollector::start({.context = driver::step_context});
    const CudaExecutor executor(chain(), runtime::pool(), nullptr, 0);
    const std::vector<Tensor> inputs = {runtime::floats({0, 1, 2, 3, 4, 5, 6, 7})};
    executor.run(inputs);
    return driver::time_by_records(executor, inputs, *collector);
  };
  const driver::StepTimes exact = times_with(""), by_order = times_with("nameless");
  EXPECT_FALSE(exact.by_order);
  EXPECT_TRUE(by_order.by_order);
  EXPECT_EQ(by_order.runs, exact.runs);
  EXPECT_EQ(by_order.kernels, exact.kernels);
  for (size_t step = 0; step < kSteps; ++step) EXPECT_EQ(by_order.one_run[step].step, step);
}

TEST(StepTimes, AnotherOrderTiesNothing) {
  GpuOperation one, two;
  one.graph_node = one.correlation = 1;
  one.name = interned("a");
  two.context = 5;
  two.name = interned("b");
  std::vector<GpuOperation> run = {one};
  EXPECT_FALSE(driver::tie_by_order(run, {two}));
  two.name = one.name;
  EXPECT_FALSE(driver::tie_by_order(run, {two, two}));
  EXPECT_EQ(run[0].captured_context, 0u);
  EXPECT_TRUE(driver::tie_by_order(run, {two}));
  EXPECT_EQ(run[0].captured_context, 5u);
}

TEST_F(CollectorTest, ASecondCollectionFollowsTheFirst) {
  EXPECT_EQ(run_chain(1).kernels.size(), kSteps);
  const Collected second = run_chain(2);
  EXPECT_EQ(second.kernels.size(), 2 * kSteps);
  EXPECT_EQ(second.kernels.back().captured_context, kSteps);
}

TEST_F(FaultyCollectorTest, OlderRecordsAreRead) {
  const Variable old("HEDDLE_EMULATED_CUPTI", "old");
  const Collected c = run_chain(2);
  ASSERT_EQ(c.kernels.size(), 2 * kSteps);
  for (size_t i = 0; i < c.kernels.size(); ++i) EXPECT_EQ(c.kernels[i].captured_context, i % kSteps + 1);
}

TEST_F(FaultyCollectorTest, RecordsThatComeAtTheEndAreThere) {
  const Variable late("HEDDLE_EMULATED_CUPTI", "late,unknown:3");
  const Collected c = run_chain(2);
  EXPECT_EQ(c.kernels.size(), 2 * kSteps);
  EXPECT_GT(c.stats.unknown_kinds, 2 * kSteps / 3);
}

TEST_F(FaultyCollectorTest, LostRecordsAreCounted) {
  const Variable lost("HEDDLE_EMULATED_CUPTI", "lost:4");
  const Collected c = run_chain(2);
  EXPECT_LT(c.kernels.size(), 2 * kSteps);
  EXPECT_GE(c.stats.dropped, 2 * kSteps - c.kernels.size());
  for (const GpuOperation& kernel : c.kernels) EXPECT_EQ(*kernel.name, symbol_of(kernel.captured_context - 1));
}

TEST_F(FaultyCollectorTest, UnknownTimesAreCounted) {
  const Variable zero("HEDDLE_EMULATED_CUPTI", "zero:4");
  const Collected c = run_chain(2);
  EXPECT_EQ(c.kernels.size(), 2 * kSteps);
  const auto unknown = std::count_if(c.kernels.begin(), c.kernels.end(), [](const auto& k) { return !k.has_times(); });
  EXPECT_GT(unknown, 0);
  EXPECT_GE(c.stats.unknown_times, static_cast<uint64_t>(unknown));
}

TEST_F(FaultyCollectorTest, ABufferWithoutItsEndGivesWhatItHas) {
  const Variable cut("HEDDLE_EMULATED_CUPTI", "cut");
  const Collected c = run_chain(2);
  EXPECT_GE(c.stats.malformed, 1u);
  EXPECT_GE(c.kernels.size(), kSteps);
}

TEST_F(FaultyCollectorTest, RefusalsSayWhatToDo) {
  const auto said = [](const char* fault) {
    const Variable faults("HEDDLE_EMULATED_CUPTI", fault);
    return std::string(test::error_of([] { GpuCollector::start({}); }).what());
  };
  EXPECT_THAT(said("held"), HasSubstr("\"CUPTI for Another\" uses CUPTI in this process already"));
  EXPECT_THAT(said("denied"), HasSubstr("NVreg_RestrictProfilingToAdminUsers"));
  const auto first = GpuCollector::start({});
  EXPECT_THAT(said(""), HasSubstr("CUPTI serves one at a time"));
  first->stop();
  EXPECT_NO_THROW(GpuCollector::start({})) << "the place is free again";
}

TEST(StepTimes, RunsWithoutAllTheirRecordsAreLeftOut) {
  const auto kernel = [](uint64_t start, uint64_t end, uint64_t step) {
    GpuOperation operation;
    operation.start = start;
    operation.end = end;
    operation.graph_node = operation.captured_context = step;
    return operation;
  };
  std::vector<std::vector<GpuOperation>> runs = {
      {kernel(100, 110, 1), kernel(108, 130, 2), kernel(140, 150, 1)},  // the second began early
      {kernel(200, 210, 1), kernel(208, 230, 2)},
      {kernel(300, 312, 1), kernel(310, 332, 2), kernel(0, 0, 1)},
      {kernel(400, 414, 1), kernel(410, 430, 2), kernel(440, 452, 1)},
  };
  const driver::StepTimes times = driver::times_of(runs, 2);
  EXPECT_EQ(times.runs, 2);
  EXPECT_EQ(times.steps, (std::vector<int64_t>{(20 + 26) / 2, (20 + 16) / 2}));
  EXPECT_EQ(times.kernels, (std::vector<int64_t>{(20 + 26) / 2, (22 + 20) / 2}));
  EXPECT_EQ(times.launches, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(times.rest, 10);
  ASSERT_EQ(times.one_run.size(), 3u);
  EXPECT_EQ(times.one_run[1].start, 10);
  runs.erase(runs.begin(), runs.begin() + 2);
  runs.pop_back();
  EXPECT_THAT(test::error_of([&] { driver::times_of(runs, 2); }).what(), HasSubstr("no run has all its records"));
}

}  // namespace
}  // namespace heddle::profile
