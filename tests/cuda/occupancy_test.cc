#include <gtest/gtest.h>

#include "target/cuda_occupancy.h"

namespace heddle {
namespace {

TEST(Occupancy, BlocksOfAMultiprocessor) {
  const CudaTarget h200;
  EXPECT_EQ(resident_blocks(h200, 512, 0), 1) << "128 registers for each thread, if the compiler wants them";
  EXPECT_EQ(resident_blocks(h200, 1024, 232448), 1);
  EXPECT_EQ(resident_blocks(h200, 128, 0), 2);
  EXPECT_EQ(resident_blocks(h200, 128, 200 << 10), 1);
  EXPECT_EQ(resident_blocks(h200, 32, 0), 8);
  EXPECT_EQ(resident_blocks(h200, 1025, 0), 0);
  EXPECT_EQ(resident_blocks(h200, 32, 232449), 0);
  EXPECT_EQ(resident_blocks(h200, 128, 0, 32), 16) << "2048 threads";
  EXPECT_EQ(resident_blocks(h200, 1024, 0, 128), 1) << "with the 64 registers that so many threads leave";
}

TEST(Occupancy, OneWave) {
  const CudaTarget h200;
  CudaLaunch launch;
  launch.block = 128, launch.shared_bytes = 100 << 10;
  launch.grid = {132, 2, 1};
  EXPECT_TRUE(is_one_wave(launch, h200, 32));
  launch.grid = {265, 1, 1};
  EXPECT_FALSE(is_one_wave(launch, h200, 32));
  launch.shared_bytes = 0;
  EXPECT_TRUE(is_one_wave(launch, h200, 32));
  EXPECT_FALSE(is_one_wave(launch, h200, 256)) << "two blocks of a SM";
}

TEST(Occupancy, BlocksThatWaitForEachOtherRunAtOnce) {
  const CudaTarget h200;
  CudaLaunch launch;
  launch.grid = {1000000, 1, 1};
  EXPECT_EQ(reject_waiting(launch, h200), "") << "nobody waits";
  launch.cooperative = true;
  launch.block = 512;
  launch.grid = {132, 1, 1};
  EXPECT_EQ(reject_waiting(launch, h200), "");
  launch.grid = {133, 1, 1};
  EXPECT_NE(reject_waiting(launch, h200), "");
  launch.grid = {66, 2, 1};
  EXPECT_EQ(reject_waiting(launch, h200), "");
  CudaTarget smaller;
  smaller.sms = 114;
  EXPECT_NE(reject_waiting(launch, smaller), "") << "a plan for a larger device";
  launch.cooperative = false;
  launch.cluster = 8;
  EXPECT_NE(reject_waiting(launch, h200), "") << "the grid is no multiple of the cluster";
  launch.grid = {64, 1, 1};
  EXPECT_EQ(reject_waiting(launch, h200), "");
  launch.shared_bytes = 232449;
  EXPECT_NE(reject_waiting(launch, h200), "");
  launch.shared_bytes = 0;
  smaller.sm = 80;
  EXPECT_NE(reject_waiting(launch, smaller), "") << "no clusters";
}

}  // namespace
}  // namespace heddle
