// Launches that begin before the one in front of them has ended.
#include "fixture.h"

namespace heddle::emulator {
namespace {

constexpr const char* kUnit = R"(
#include "tile/arch/sm90/dependent.h"
using namespace heddle::tile::sm90;
extern "C" __global__ void set(int* p, int value) {
  launch_dependents();
  grid_dependency_wait();
  p[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
// Reads before and behind the wait.
extern "C" __global__ void copy(const int* from, const int* constants, int* early, int* to) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  const int before = *reinterpret_cast<const volatile int*>(from + at), constant = constants[at];
  grid_dependency_wait();
  early[at] = before;
  to[at] = from[at] + constant;
}
extern "C" __global__ void behind_barrier(const int* from, int* to) {
  if (threadIdx.x == 0) grid_dependency_wait();
  __syncthreads();
  to[threadIdx.x] = from[threadIdx.x];
}
extern "C" __global__ void nobody_waits(int* p) { p[threadIdx.x] = 1; }
)";

class Early : public EmulatorTest {
 protected:
  void SetUp() override {
    EmulatorTest::SetUp();
    load(kUnit);
  }
  template <typename... Args>
  void enqueue(const char* symbol, unsigned grid, Args... args) {
    void* pointers[] = {&args..., nullptr};
    CudaLaunchAttribute attribute{CudaLaunchAttribute::kProgrammaticSerialization, 0, {1}};
    CudaLaunchConfig config;
    config.grid[0] = grid;
    config.block[0] = 32;
    config.stream = context->stream();
    config.attributes = &attribute;
    config.attribute_count = 1;
    const CudaDriver& driver = context->driver();
    driver.check(driver.launch(&config, module->function(symbol, 0), pointers, nullptr), symbol);
  }
  std::string wait() {
    try {
      context->driver().check(context->driver().stream_synchronize(context->stream()), "wait");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(Early, WhatIsReadBeforeTheWaitIsOld) {
  constexpr unsigned kBlocks = 3;
  constexpr size_t kBytes = kBlocks * 32 * sizeof(int);
  auto p = buffer(kBytes), constants = buffer(kBytes), early = buffer(kBytes), to = buffer(kBytes);
  enqueue("set", kBlocks, constants.address(), 100);
  ASSERT_EQ(wait(), "");
  int old = 0;
  for (int round = 1; round <= 30; ++round) {
    enqueue("set", kBlocks, p.address(), round);
    enqueue("copy", kBlocks, p.address(), constants.address(), early.address(), to.address());
    ASSERT_EQ(wait(), "");
    for (const int value : read<int>(to)) ASSERT_EQ(value, round + 100);
    for (const int value : read<int>(early)) old += value != round;
  }
  EXPECT_GT(old, 0);
  EXPECT_LT(old, static_cast<int>(30 * kBlocks * 32)) << "not all blocks begin early";
}

TEST_F(Early, KernelsFollowEachOtherThroughAChain) {
  auto a = buffer(128), b = buffer(128), c = buffer(128);
  for (int round = 0; round < 20; ++round) {
    enqueue("set", 1, a.address(), round);
    enqueue("behind_barrier", 1, a.address(), b.address());
    enqueue("behind_barrier", 1, b.address(), c.address());
    enqueue("set", 1, a.address(), -1);  // written while an early one might read it
    ASSERT_EQ(wait(), "");
    for (const int value : read<int>(c)) ASSERT_EQ(value, round);
    for (const int value : read<int>(a)) ASSERT_EQ(value, -1);
  }
}

TEST_F(Early, ABlockThatNeverWaitsIsAnError) {
  auto p = buffer(128);
  enqueue("set", 1, p.address(), 1);
  enqueue("nobody_waits", 1, p.address());
  EXPECT_NE(wait().find("without a wait for the launch in front"), std::string::npos);
  enqueue("set", 1, p.address(), 2);
  EXPECT_EQ(wait(), "");
  EXPECT_EQ(read<int>(p)[0], 2);
}

}  // namespace
}  // namespace heddle::emulator
