// Which kernels a report calls far from their floor, and why.
#include "driver/model/kernel_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::driver {
namespace {

using testing::HasSubstr;

constexpr double kMicro = 1e-6;

CompileReport report_for(const std::string& target) {
  CompileReport report;
  report.target = target;
  report.threads = 4, report.sms = 100;
  report.groups.resize(1);
  return report;
}

KernelReport product(double floor_us, double predicted_us, uint32_t blocks) {
  KernelReport kernel;
  kernel.family = "wgmma", kernel.reason = "fastest by the model";
  kernel.floor_seconds = floor_us * kMicro;
  kernel.configuration.predicted_us = predicted_us;
  kernel.launches.resize(2);
  kernel.launches.back().grid = {blocks, 1, 1};
  return kernel;
}

TEST(KernelTimes, AKernelNearItsFloorIsNotFar) {
  const KernelTimes times(report_for("cuda-sm_90a"));
  EXPECT_FALSE(times.excess(product(10, 29, 500)));
  EXPECT_FALSE(times.excess(product(0, 29, 500)));  // of nothing to do no multiple says anything
  EXPECT_FALSE(times.excess(product(0.5, 4, 30)));  // launch and latency
}

TEST(KernelTimes, SaysWhatKeepsAKernelFromItsFloor) {
  const KernelTimes times(report_for("cuda-sm_90a"));
  const auto excess = [&](const KernelReport& kernel) { return times.excess(kernel).value_or(Excess{}); };
  EXPECT_DOUBLE_EQ(excess(product(10, 40, 500)).times, 4);
  EXPECT_THAT(excess(product(10, 40, 500)).why, HasSubstr("wgmma: fastest by the model"));
  EXPECT_THAT(excess(product(10, 40, 30)).why, HasSubstr("70 of 100 SMs idle"));
  EXPECT_THAT(excess(product(2, 9, 500)).why, HasSubstr("too little work to hide"));
}

// A term that explains little of the time is no reason, however visible it is.
TEST(KernelTimes, TheReasonIsTheLargestTerm) {
  CompileReport report = report_for("cuda-sm_90a");
  const auto why = [&](const KernelReport& kernel) {
    return KernelTimes(report).excess(kernel).value_or(Excess{}).why;
  };
  EXPECT_THAT(why(product(1, 55, 96)), testing::AllOf(HasSubstr("wgmma"), testing::Not(HasSubstr("idle"))));
  EXPECT_THAT(why(product(20, 61, 110)), HasSubstr("90 of 100 SMs idle in the last of 2 waves, 16.4 of 61.0 us"));
  KernelReport stitch = product(1, 0, 500);
  stitch.family.clear();
  stitch.stitch.mapping = "8 rows", stitch.stitch.predicted_seconds = 60 * kMicro;
  EXPECT_THAT(why(stitch), HasSubstr("latencies inside it (8 rows), 49.0 of 60.0 us"));
  KernelReport measured = product(1, 3, 500);
  measured.measured_seconds = 55 * kMicro;
  report.groups[0].kernels = {measured};
  EXPECT_THAT(why(measured), HasSubstr("the cost model, which predicts 3.0 us, does not know why, 52.0 of 55.0 us"));
}

TEST(KernelTimes, MeasuredTimesCountWhereThereAreAny) {
  CompileReport report = report_for("cuda-sm_90a");
  report.groups[0].kernels = {product(10, 12, 500)};
  report.groups[0].kernels[0].measured_seconds = 70 * kMicro;
  const auto excess = KernelTimes(report).excess(report.groups[0].kernels[0]);
  ASSERT_TRUE(excess);
  EXPECT_DOUBLE_EQ(excess->times, 7);
}

TEST(KernelTimes, TimesOfABusyMachineAreFarFromNoFloor) {
  CompileReport report = report_for("cpu-avx2");
  report.groups[0].kernels = {product(40, 0, 0)};
  report.groups[0].kernels[0].measured_seconds = 390 * kMicro;
  EXPECT_TRUE(KernelTimes(report).excess(report.groups[0].kernels[0]));
  report.waiting = 0.5;
  EXPECT_FALSE(KernelTimes(report).excess(report.groups[0].kernels[0]));
}

TEST(KernelTimes, TheThreadsOfACpuShareItsFloor) {
  CompileReport report = report_for("cpu-avx2");
  KernelReport kernel = product(40, 0, 0);
  kernel.tasks = 8;
  kernel.measured_seconds = 39 * kMicro;
  report.groups[0].kernels = {kernel};
  const auto excess = KernelTimes(report).excess(kernel);
  ASSERT_TRUE(excess);
  EXPECT_DOUBLE_EQ(excess->times, 3.9);
  EXPECT_THAT(excess->why, HasSubstr("fastest by the model"));
  kernel.tasks = 1;
  EXPECT_THAT(KernelTimes(report).excess(kernel)->why, HasSubstr("3 of 4 threads idle, 29.0 of 39.0 us"));
}

}  // namespace
}  // namespace heddle::driver
