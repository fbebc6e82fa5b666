// Threads, barriers, lanes, shared memory: what every kernel stands on, and the reports of kernels that are wrong.
#include "fixture.h"

namespace heddle::emulator {
namespace {

using testing::Test;

constexpr const char* kReverse = R"(
#include <stdint.h>
extern "C" __global__ void __launch_bounds__(256) reverse(const int* from, int* to, int sync) {
  extern __shared__ int tile[];
  const int first = blockIdx.x * blockDim.x;
  tile[threadIdx.x] = from[first + threadIdx.x];
  if (sync) __syncthreads();
  to[first + threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
)";

std::vector<int> iota(int count) {
  std::vector<int> values(count);
  for (int i = 0; i < count; ++i) values[i] = i;
  return values;
}

class Simt : public EmulatorTest {
 protected:
  bool reverses(int sync) {
    constexpr int kBlocks = 3, kThreads = 96;
    const auto values = iota(kBlocks * kThreads);
    auto from = buffer(values.size() * 4), to = buffer(values.size() * 4);
    from.write(values.data(), values.size() * 4);
    launch("reverse", kBlocks, kThreads, kThreads * 4, from.address(), to.address(), sync);
    const auto got = read<int>(to);
    for (int i = 0; i < kBlocks * kThreads; ++i) {
      if (got[i] != i / kThreads * kThreads + kThreads - 1 - i % kThreads) return false;
    }
    return true;
  }
};

TEST_F(Simt, DeviceIsAnEmulator) {
  EXPECT_TRUE(context->driver().emulated);
  EXPECT_TRUE(context->device().target.emulated);
  EXPECT_EQ(context->device().target.architecture(), "emulated_sm_90a");
  EXPECT_EQ(context->device().name, "Heddle emulator");
}

TEST_F(Simt, AnOlderDeviceHasNoClusters) {
  const Variable older("HEDDLE_EMULATED_SM", "80");
  SetUp();
  EXPECT_EQ(context->device().target.architecture(), "emulated_sm_80");
  EXPECT_EQ(context->device().target.sms, 108);
  EXPECT_EQ(context->device().target.shared_bytes_per_block, 163 << 10);
  load("extern \"C\" __global__ void __cluster_dims__(2, 1, 1) pair(int* out) { *out = __CUDA_ARCH__; }");
  auto out = buffer(4);
  EXPECT_NE(failure("pair", 2, 32, 0, out.address()).find("no clusters"), std::string::npos);
  load("extern \"C\" __global__ void one(int* out) { *out = __CUDA_ARCH__; }");
  launch("one", 1, 1, 0, out.address());
  EXPECT_EQ(read<int>(out)[0], 800);
}

TEST_F(Simt, SharedMemoryAndABarrier) {
  load(kReverse);
  for (const char* seed : {"1", "2", "3"}) {
    const Variable order("HEDDLE_EMULATOR_SEED", seed);
    EXPECT_TRUE(reverses(1));
  }
}

TEST_F(Simt, AMissingBarrierShowsInTheResult) {
  load(kReverse);
  EXPECT_FALSE(reverses(0));
}

TEST_F(Simt, LanesExchange) {
  load(R"(
extern "C" __global__ void lanes(unsigned* out) {
  const unsigned all = 0xffffffffu, lane = threadIdx.x % 32;
  unsigned sum = threadIdx.x;
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(all, sum, offset);
  unsigned* o = out + threadIdx.x * 8;
  o[0] = sum;
  o[1] = __shfl_sync(all, threadIdx.x, 5);
  o[2] = __shfl_up_sync(all, threadIdx.x, 3);
  o[3] = __shfl_down_sync(all, threadIdx.x, 3, 16);
  o[4] = __ballot_sync(all, lane % 3 == 0);
  o[5] = __any_sync(all, lane == 7) + 2 * __all_sync(all, lane == 7) + 4 * __syncthreads_or(threadIdx.x == 40);
  o[6] = __reduce_max_sync(all, lane * 7 % 32);
  o[7] = __syncthreads_count(lane < 4);
}
)");
  auto out = buffer(64 * 8 * 4);
  launch("lanes", 1, 64, 0, out.address());
  const auto got = read<unsigned>(out);
  unsigned ballot = 0;
  for (int lane = 0; lane < 32; lane += 3) ballot |= 1u << lane;
  for (unsigned t = 0; t < 64; ++t) {
    const unsigned warp = t / 32 * 32, lane = t % 32;
    EXPECT_EQ(got[t * 8], 32 * warp + 496);
    EXPECT_EQ(got[t * 8 + 1], warp + 5);
    EXPECT_EQ(got[t * 8 + 2], lane < 3 ? t : t - 3);
    EXPECT_EQ(got[t * 8 + 3], lane % 16 < 13 ? t + 3 : t);
    EXPECT_EQ(got[t * 8 + 4], ballot);
    EXPECT_EQ(got[t * 8 + 5], 1u + 4u);
    EXPECT_EQ(got[t * 8 + 6], 31u);
    EXPECT_EQ(got[t * 8 + 7], 8u);
  }
}

TEST_F(Simt, AtomicsOfManyBlocks) {
  load(R"(
extern "C" __global__ void add(int* sum, float* fsum, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  atomicAdd(sum, i);
  atomicAdd(fsum, 0.5f);
  atomicMax(sum + 1, i);
}
)");
  auto sum = buffer(8), fsum = buffer(4);
  const int zeros[2] = {};
  sum.write(zeros, 8);
  fsum.write(zeros, 4);
  launch("add", 40, 128, 0, sum.address(), fsum.address(), 5000);
  EXPECT_EQ(read<int>(sum)[0], 4999 * 5000 / 2);
  EXPECT_EQ(read<int>(sum)[1], 4999);
  EXPECT_EQ(read<float>(fsum)[0], 2500.f);
}

TEST_F(Simt, ADeadlockSaysWhoWaitsWhere) {
  load(R"(
#include "tile/arch/sm80/named_barrier.h"
extern "C" __global__ void half_waits(int* out) {
  if (threadIdx.x < 64) __syncthreads();
  if (threadIdx.x < 96) heddle::tile::cuda::named_barrier_sync<1>(128);
  out[threadIdx.x] = 1;
}
)");
  auto out = buffer(128 * 4);
  const std::string text = failure("half_waits", 1, 128, 0, out.address());
  EXPECT_NE(text.find("kernel half_waits: deadlock"), std::string::npos) << text;
  EXPECT_NE(text.find("64 thread(s) wait in __syncthreads (unit.cu:4)"), std::string::npos) << text;
  EXPECT_NE(text.find("32 have ended"), std::string::npos) << text;
  EXPECT_NE(failure("half_waits", 1, 128, 0, out.address()), "") << "the device goes on working";
}

TEST_F(Simt, BlockBarriersDoNotWaitForThreadsThatHaveEnded) {
  load(R"(
extern "C" __global__ void some_end(int* out) {
  if (threadIdx.x >= 64) return;
  __syncthreads();
  out[threadIdx.x] = __syncthreads_count(threadIdx.x < 3);
}
)");
  auto out = buffer(64 * 4);
  launch("some_end", 3, 160, 0, out.address());
  EXPECT_EQ(read<int>(out), std::vector<int>(64, 3));
}

TEST_F(Simt, WritesOutsideHitRedZones) {
  load(R"(
extern "C" __global__ void outside(int* out, int at, int shared_at) {
  extern __shared__ int tile[];
  tile[shared_at] = 1;
  out[at] = 1;
}
)");
  auto out = buffer(100);
  EXPECT_EQ(failure("outside", 1, 1, 64, out.address(), 24, 15), "");
  EXPECT_NE(failure("outside", 1, 1, 64, out.address(), 25, 15).find("byte 0 behind the end of an allocation of 100"),
            std::string::npos);
  EXPECT_NE(failure("outside", 1, 1, 64, out.address(), -1, 15).find("byte 4 before an allocation"), std::string::npos);
  EXPECT_NE(failure("outside", 1, 1, 64, out.address(), 0, 16).find("64 bytes of dynamic shared memory"),
            std::string::npos);
}

}  // namespace
}  // namespace heddle::emulator
