// Grids whose blocks meet, and a device that is small, broken or not there.
#include "fixture.h"
#include "runtime/cuda/launch.h"

namespace heddle::emulator {
namespace {

constexpr const char* kMeet = R"(
#include <stdint.h>
// Every block adds one and waits for all of them.
extern "C" __global__ void meet(unsigned* count, unsigned* out) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(count, 1u);
    while (atomicCAS(count, gridDim.x, gridDim.x) != gridDim.x) __nanosleep(20);
  }
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = *count;
}
)";

class Grids : public EmulatorTest {
 protected:
  std::string meet(unsigned blocks, bool cooperative) {
    const unsigned zero = 0;
    auto count = buffer(4);
    auto out = buffer(blocks * 64 * 4);
    count.write(&zero, 4);
    uint64_t addresses[2] = {count.address(), out.address()};
    void* arguments[2] = {&addresses[0], &addresses[1]};
    CudaLaunchAttribute attribute{CudaLaunchAttribute::kCooperative, 0, {1}};
    CudaLaunchConfig config;
    config.grid[0] = blocks;
    config.block[0] = 64;
    config.stream = context->stream();
    config.attributes = &attribute;
    config.attribute_count = cooperative ? 1 : 0;
    try {
      const CudaDriver& driver = context->driver();
      driver.check(driver.launch(&config, module->function("meet", 0), arguments, nullptr), "meet");
      driver.check(driver.stream_synchronize(context->stream()), "meet");
    } catch (const Error& error) {
      return error.what();
    }
    for (const unsigned value : read<unsigned>(out)) EXPECT_EQ(value, blocks);
    return "";
  }
};

TEST_F(Grids, BlocksMeetWhereAllOfThemFit) {
  const Variable sms("HEDDLE_EMULATED_SMS", "2");
  load(kMeet);
  EXPECT_EQ(meet(40, true), "");
  EXPECT_EQ(meet(40, false), "") << "they start when the others wait";
  EXPECT_EQ(meet(64, true), "");
  EXPECT_NE(meet(65, true).find("COOPERATIVE_LAUNCH_TOO_LARGE"), std::string::npos) << meet(65, true);
  const std::string text = meet(65, false);
  EXPECT_NE(text.find("deadlock in 64 block(s), 1 not started"), std::string::npos) << text;
  EXPECT_NE(text.find("64 thread(s) wait for a value in memory"), std::string::npos) << text;
}

TEST_F(Grids, LaunchesThatHardwareRefuses) {
  load("extern \"C\" __global__ void __launch_bounds__(128) fill(int* p) { p[threadIdx.x] = 1; }");
  auto out = buffer(4096);
  EXPECT_EQ(failure("fill", 1, 128, 0, out.address()), "");
  EXPECT_NE(failure("fill", 1, 129, 0, out.address()).find("__launch_bounds__ say 128"), std::string::npos);
  EXPECT_NE(failure("fill", 0, 128, 0, out.address()), "");
  EXPECT_NE(failure("fill", 1, 128, 300 << 10, out.address()).find("shared memory"), std::string::npos);
}

TEST_F(Grids, MemoryRunsOut) {
  const Variable small("HEDDLE_EMULATED_MEMORY", "1000000");
  auto first = buffer(600000);
  try {
    buffer(600000);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
    EXPECT_NE(std::string(error.what()).find("400000 bytes of 1000000"), std::string::npos) << error.what();
  }
  EXPECT_NO_THROW(buffer(400000));
}

TEST_F(Grids, FreshMemoryIsNaN) {
  auto fresh = buffer(64);
  for (const float value : read<float>(fresh)) EXPECT_NE(value, value);
}

TEST_F(Grids, ALostDeviceFailsEveryCall) {
  constexpr const char* kFill = "extern \"C\" __global__ void fill(int* p) { p[threadIdx.x] = 1; }";
  load(kFill);
  {
    const Variable lost("HEDDLE_EMULATED_FAULT", "lost");
    {
      auto out = buffer(128);
      EXPECT_NE(failure("fill", 1, 32, 0, out.address()).find("the device is lost"), std::string::npos);
      EXPECT_NE(failure("fill", 1, 32, 0, out.address()), "");
      EXPECT_THROW(buffer(16), Error);
    }
    module.reset();
    context.reset();
    EXPECT_THROW(SetUp(), Error) << "another context does not bring it back";
  }
  SetUp();
  load(kFill);
  auto out = buffer(128);
  EXPECT_EQ(failure("fill", 1, 32, 0, out.address()), "") << "as in the next process";
}

TEST_F(Grids, WhatIsEnqueuedMayRunLate) {
  load("extern \"C\" __global__ void set(int* p) { *p = 7; }");
  auto out = buffer(4);
  const CudaDriver& driver = context->driver();
  void* host = nullptr;
  driver.check(driver.host_alloc(&host, 4, 0), "host_alloc");
  uint64_t address = out.address();
  void* arguments[1] = {&address};
  CudaLaunchConfig config;
  config.stream = context->stream();
  int early = 0;
  for (int i = 0; i < 20; ++i) {
    *static_cast<int*>(host) = 0;
    driver.check(driver.launch(&config, module->function("set", 0), arguments, nullptr), "set");
    driver.check(driver.copy_out_async(host, out.address(), 4, context->stream()), "copy");
    early += *static_cast<int*>(host) == 7;
    driver.check(driver.stream_synchronize(context->stream()), "sync");
    EXPECT_EQ(*static_cast<int*>(host), 7);
  }
  driver.host_free(host);
  EXPECT_GT(early, 0);
  EXPECT_LT(early, 20) << "reading without a wait shows";
}

TEST_F(Grids, AGraphRunsWhatWasCaptured) {
  load("extern \"C\" __global__ void add(int* p, int x) { p[threadIdx.x] += x; }");
  auto out = buffer(128);
  const std::vector<int> zeros(32);
  out.write(zeros.data(), 128);
  uint64_t address = out.address();
  int x = 3;
  void* arguments[2] = {&address, &x};
  CudaLaunchConfig config;
  config.block[0] = 32;
  config.stream = context->stream();
  const auto function = module->function("add", 0);
  const runtime::CudaGraph graph(*context, [&] {
    for (int i = 0; i < 2; ++i)
      context->driver().check(context->driver().launch(&config, function, arguments, nullptr), "add");
  });
  x = 100;  // arguments were copied
  EXPECT_EQ(read<int>(out), zeros) << "nothing ran";
  graph.launch();
  graph.launch();
  EXPECT_EQ(read<int>(out), std::vector<int>(32, 12));
}

TEST_F(Grids, BadMachineCodeIsRefused) {
  const std::string text(1000, 'x');
  EXPECT_THROW(runtime::CudaModule(*context, text), Error);
  load("extern \"C\" __global__ void fill(int* p) {}");
  EXPECT_THROW(module->function("other", 0), Error);
}

// In processes of their own: a process keeps its driver.
int devices_with(const char* fault) {
  ::setenv("HEDDLE_CUDA_DRIVER", HEDDLE_EMULATOR, 0);
  ::setenv("HEDDLE_EMULATED_FAULT", fault, 1);
  return static_cast<int>(cuda_devices().size());
}

TEST(DeviceDeathTest, DriversWithoutADevice) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(std::exit(devices_with("")), testing::ExitedWithCode(1), "");
  EXPECT_EXIT(std::exit(devices_with("no_device")), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(std::exit(devices_with("init")), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace heddle::emulator
