#include "target/target.h"

#include <gtest/gtest.h>

#include "heddle/error.h"

namespace heddle {
namespace {

// A chain of additions that the core folds measured 20 GHz.
TEST(Target, TheClockOfThisMachineIsOneThatCoresHave) {
  const CpuTarget cpu = Target::host_cpu(1).cpu;
  EXPECT_GE(cpu.ghz, 0.5);
  EXPECT_LE(cpu.ghz, 8);
}

TEST(Target, AGpuHasWhatItsComputeCapabilityBrings) {
  struct Has {
    int sm;
    bool tensor_cores, fp8, wgmma, hopper;
  };
  for (const Has& has :
       {Has{75, false, false, false, false}, Has{80, true, false, false, false}, Has{89, true, true, false, false},
        Has{90, true, true, true, true}, Has{100, true, true, false, true}}) {  // wgmma is of 9.0 alone
    CudaTarget cuda;
    cuda.sm = has.sm;
    EXPECT_EQ(cuda.has_tensor_cores(), has.tensor_cores) << has.sm;
    EXPECT_EQ(cuda.has_fp8_mma(), has.fp8) << has.sm;
    EXPECT_EQ(cuda.has_wgmma(), has.wgmma) << has.sm;
    EXPECT_EQ(cuda.has_tma(), has.hopper) << has.sm;
    EXPECT_EQ(cuda.has_clusters(), has.hopper) << has.sm;
    EXPECT_EQ(cuda.has_dependent_launch(), has.hopper) << has.sm;
    EXPECT_EQ(Target::of(cuda).has_wgmma(), has.wgmma) << has.sm;
  }
  // A CPU has none of it, whatever stands in its unused half.
  EXPECT_FALSE(Target::host_cpu(1).has_wgmma());
  EXPECT_FALSE(Target::host_cpu(1).has_tensor_cores());
}

TEST(Target, PinnedChipsAreThoseOfTheirDataSheets) {
  EXPECT_EQ(CudaTarget::pinned(90).sms, 132);
  const CudaTarget a = CudaTarget::pinned(80);
  EXPECT_EQ(a.architecture(), "sm_80");
  EXPECT_EQ(a.sms, 108);
  EXPECT_EQ(a.shared_bytes_per_block, 166912);
  EXPECT_EQ(fingerprint(a.model), fingerprint(a100().model));
  EXPECT_THROW(CudaTarget::pinned(86), Error);
}

TEST(Target, FactsAreOfTheKindThatItIs) {
  Target target = Target::of(CudaTarget::pinned(90));
  EXPECT_TRUE(target.fingerprint().starts_with("cuda-sm_90a-")) << target.fingerprint();
  EXPECT_EQ(target.copy_bytes_per_second(), target.cuda.model.chip.copy_tbps * 1e12);
  EXPECT_EQ(target.memory_bytes(), target.cuda.memory_bytes);
  EXPECT_FALSE(target.traits().runs_regions_side_by_side);
  target.kind = TargetKind::kCpu;
  EXPECT_TRUE(target.fingerprint().starts_with("cpu-")) << target.fingerprint();
  EXPECT_EQ(target.copy_bytes_per_second(), target.cpu.copy_gbps * 1e9);
  EXPECT_TRUE(target.traits().runs_regions_side_by_side);
  EXPECT_FALSE(target.identity().name.empty());
  EXPECT_FALSE(target.identity().driver.has_value());
}

}  // namespace
}  // namespace heddle
