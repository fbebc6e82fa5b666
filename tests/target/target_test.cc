#include "target/target.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

// A chain of additions that the core folds measured 20 GHz.
TEST(Target, TheClockOfThisMachineIsOneThatCoresHave) {
  const CpuTarget cpu = Target::host_cpu(1).cpu;
  EXPECT_GE(cpu.ghz, 0.5);
  EXPECT_LE(cpu.ghz, 8);
}

}  // namespace
}  // namespace heddle
