// Which kernels a report calls far from their floor, and why.
#include "driver/report/kernel_times.h"

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

TEST(KernelTimes, MeasuredTimesCountWhereThereAreAny) {
  CompileReport report = report_for("cuda-sm_90a");
  report.groups[0].kernels = {product(10, 12, 500)};
  report.groups[0].kernels[0].measured_seconds = 70 * kMicro;
  const auto excess = KernelTimes(report).excess(report.groups[0].kernels[0]);
  ASSERT_TRUE(excess);
  EXPECT_DOUBLE_EQ(excess->times, 7);
}

TEST(KernelTimes, TheThreadsOfACpuShareItsFloor) {
  CompileReport report = report_for("cpu-avx2");
  KernelReport kernel = product(40, 0, 0);
  kernel.measured_seconds = 39 * kMicro;
  report.groups[0].kernels = {kernel};
  const auto excess = KernelTimes(report).excess(kernel);
  ASSERT_TRUE(excess);
  EXPECT_DOUBLE_EQ(excess->times, 3.9);
  EXPECT_THAT(excess->why, HasSubstr("fastest by the model"));
}

}  // namespace
}  // namespace heddle::driver
