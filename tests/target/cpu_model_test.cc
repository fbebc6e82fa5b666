#include "target/cpu_model.h"

#include <gtest/gtest.h>

#include "target/target.h"

namespace heddle {
namespace {

TEST(CpuModel, EveryMachineHasEveryNumber) {
  for (const KnownCpu* cpu : {&avx512_cpu(), &avx2_cpu()}) {
    for_each_cpu_number(cpu->model,
                        [&](std::string_view name, double value) { EXPECT_GT(value, 0) << cpu->name << " " << name; });
  }
}

TEST(CpuModel, AMachineHasTheModelOfItsVectors) {
  EXPECT_EQ(&model_of(CpuIsa::kAvx512), &avx512_cpu().model);
  EXPECT_EQ(&model_of(CpuIsa::kAvx2), &avx2_cpu().model);
  EXPECT_EQ(&model_of(CpuIsa::kPortable), &avx2_cpu().model);  // the nearest
}

TEST(CpuModel, KeysOfTheCacheDifferWithEveryNumber) {
  Target target = Target::host_cpu(1);
  const std::string key = target.model_fingerprint(), machine = target.fingerprint();
  for_each_cpu_number(target.cpu.model, [&](std::string_view name, double& value) {
    const double kept = value;
    value *= 1.5;
    EXPECT_NE(target.model_fingerprint(), key) << name;
    EXPECT_EQ(target.fingerprint(), machine);
    value = kept;
  });
  EXPECT_EQ(target.model_fingerprint(), key);
}

}  // namespace
}  // namespace heddle
