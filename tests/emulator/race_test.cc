// Races on global memory, which no order of threads has to show.
#include "fixture.h"

namespace heddle::emulator {
namespace {

constexpr const char* kRaceUnit = R"(
#include "tile/arch/sm80/global.h"
#include "tile/arch/sm90/dependent.h"
using namespace heddle::tile;
// The first block passes 64 values on to the others. What is missing is a bit of `without`.
constexpr unsigned kNothing = 0, kFence = 1, kBarrier = 2, kAcquire = 4, kBarrierBehind = 8;
extern "C" __global__ void pass_on(int* values, unsigned* flag, int* sums, unsigned without) {
  if (blockIdx.x == 0) {
    values[threadIdx.x] = static_cast<int>(threadIdx.x);
    if (without != kBarrier) __syncthreads();
    if (threadIdx.x != 0) return;
    if (without != kFence) __threadfence();
    atomicExch(flag, 1u);
    return;
  }
  if (threadIdx.x == 0) {
    while ((without == kAcquire ? sm80::load_now<false>(flag) : sm80::load_now<true>(flag)) == 0) {
    }
  }
  if (without != kBarrierBehind) __syncthreads();
  sums[(blockIdx.x - 1) * blockDim.x + threadIdx.x] = values[threadIdx.x] + values[(threadIdx.x + 1) % 64];
}
// Every thread has a fence; the first one of the block stores or loads the flag.
extern "C" __global__ void pass_on_by_fences_of_all(int* values, unsigned* flag, int* sums, int fences) {
  if (blockIdx.x == 0) {
    values[threadIdx.x] = static_cast<int>(threadIdx.x);
    if (fences != 0) __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(flag, 1u);
    return;
  }
  if (threadIdx.x == 0) {
    while (sm80::load_now<false>(flag) == 0) {
    }
  }
  __syncthreads();
  __threadfence();
  sums[threadIdx.x] = values[63 - threadIdx.x];
}
extern "C" __global__ void neighbours(int* p) {
  p[(blockIdx.x + threadIdx.x) % 64] = 1;
}
extern "C" __global__ void own(int* p) {
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  p[at] = p[at] + 1;
}
extern "C" __global__ void count(unsigned* p, int plain) {
  atomicAdd(p, 1u);
  if (plain != 0 && threadIdx.x == 3) p[1] = p[0];
}
extern "C" __global__ void shift(const short* from, short* to) {
  to[(blockIdx.x * blockDim.x + threadIdx.x) * 2] = from[threadIdx.x];
}
extern "C" __global__ void early(const int* from, int* to, int waits) {
  sm90::launch_dependents();
  int x = 0;
  if (waits == 0) x = from[threadIdx.x];
  if (threadIdx.x == 0) sm90::grid_dependency_wait();
  __syncthreads();
  if (waits != 0) x = from[threadIdx.x];
  to[threadIdx.x] = x;
}
)";

class Race : public EmulatorTest {
 protected:
  void SetUp() override {
    EmulatorTest::SetUp();
    static const std::string cubin =
        jit::compile_cubin(kRaceUnit, context->device().target.architecture(), false).bytes;
    module = std::make_unique<runtime::CudaModule>(*context, cubin);
  }
  Variable races_{"HEDDLE_EMULATOR_RACES", "1"};
};

TEST_F(Race, MissingOrderOfAMessage) {
  for (const unsigned without : {0u, 1u, 2u, 4u, 8u}) {
    auto values = buffer(64 * sizeof(int)), flag = buffer(sizeof(unsigned)), sums = buffer(3 * 64 * sizeof(int));
    const unsigned zero = 0;
    flag.write(&zero, sizeof zero);
    const std::string why = failure("pass_on", 4, 64, 0, values.address(), flag.address(), sums.address(), without);
    if (without == 0) {
      EXPECT_EQ(why, "");
      continue;
    }
    EXPECT_NE(why.find("a race: thread "), std::string::npos) << without << ": " << why;
    EXPECT_NE(why.find("of an allocation of 256 (unit.cu:"), std::string::npos) << why;
  }
}

TEST_F(Race, FencesCountAcrossBarriers) {
  for (const int fences : {1, 0}) {
    auto values = buffer(64 * sizeof(int)), flag = buffer(sizeof(unsigned)), sums = buffer(64 * sizeof(int));
    const unsigned zero = 0;
    flag.write(&zero, sizeof zero);
    const std::string why =
        failure("pass_on_by_fences_of_all", 2, 64, 0, values.address(), flag.address(), sums.address(), fences);
    if (fences != 0) {
      EXPECT_EQ(why, "");
    } else {
      EXPECT_NE(why.find("a race: thread "), std::string::npos) << why;
    }
  }
}

TEST_F(Race, BlocksThatWriteTheSame) {
  auto memory = buffer(64 * sizeof(int));
  EXPECT_EQ(failure("neighbours", 1, 64, 0, memory.address()), "");
  const std::string why = failure("neighbours", 2, 64, 0, memory.address());
  EXPECT_NE(why.find("writes 4 bytes"), std::string::npos) << why;
}

TEST_F(Race, LaunchesFollowEachOther) {
  auto memory = buffer(256 * sizeof(int));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(failure("own", 4, 64, 0, memory.address()), "");
  EXPECT_EQ(failure("own", 2, 128, 0, memory.address()), "");
}

TEST_F(Race, AtomicsRaceWithOrdinaryAccessesOnly) {
  auto memory = buffer(2 * sizeof(unsigned));
  EXPECT_EQ(failure("count", 3, 64, 0, memory.address(), 0), "");
  const std::string why = failure("count", 1, 64, 0, memory.address(), 1);
  EXPECT_NE(why.find("updates atomically"), std::string::npos) << why;
}

TEST_F(Race, PartsOfAWordAreApart) {
  auto memory = buffer(128 * sizeof(short)), from = buffer(64 * sizeof(short));
  EXPECT_EQ(failure("shift", 1, 64, 0, from.address(), memory.address()), "");
}

TEST_F(Race, ReadsBeforeTheWaitForThePrecedingLaunch) {
  for (const int waits : {1, 0}) {
    auto first = buffer(32 * sizeof(int)), second = buffer(32 * sizeof(int)), third = buffer(32 * sizeof(int));
    const CudaDriver& driver = context->driver();
    const auto enqueue = [&](uint64_t from, uint64_t to, int w) {
      void* pointers[] = {&from, &to, &w, nullptr};
      CudaLaunchAttribute attribute{CudaLaunchAttribute::kProgrammaticSerialization, 0, {1}};
      CudaLaunchConfig config;
      config.grid[0] = 1;
      config.block[0] = 32;
      config.stream = context->stream();
      config.attributes = &attribute;
      config.attribute_count = 1;
      driver.check(driver.launch(&config, module->function("early", 0), pointers, nullptr), "early");
    };
    enqueue(first.address(), second.address(), 1);
    enqueue(second.address(), third.address(), waits);
    std::string why;
    try {
      driver.check(driver.stream_synchronize(context->stream()), "wait");
    } catch (const Error& error) {
      why = error.what();
    }
    if (waits != 0) {
      EXPECT_EQ(why, "");
    } else {
      EXPECT_NE(why.find("a race"), std::string::npos) << why;
      EXPECT_NE(why.find("launch"), std::string::npos) << why;
    }
  }
}

TEST_F(Race, CodeThatDoesNotReportIsRefused) {
  const Variable off("HEDDLE_EMULATOR_RACES", "0");
  const std::string cubin = jit::compile_cubin(kRaceUnit, context->device().target.architecture(), false).bytes;
  const Variable on("HEDDLE_EMULATOR_RACES", "1");
  try {
    const runtime::CudaModule other(*context, cubin);
    FAIL() << "it was loaded";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("HEDDLE_EMULATOR_RACES=1"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace heddle::emulator
