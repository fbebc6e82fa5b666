// Blocks that wait for others, and accesses to memory that is not there.
#include "fixture.h"

namespace heddle::emulator {
namespace {

constexpr const char* kChain = R"(
#include <stdint.h>
#include "tile/arch/sm80/global.h"
// Block b waits for the flag of block b - 1, or of the one behind it, by an atomic that changes nothing, or by a load.
extern "C" __global__ void chain(unsigned* flags, unsigned* out, int step, int load, int barriers) {
  extern __shared__ unsigned seen[];
  const int from = int(blockIdx.x) + step;
  if (from >= 0 && from < int(gridDim.x)) {
    unsigned flag = 0;
    while (flag == 0) {
      if (threadIdx.x == 0) {
        *seen = load ? heddle::tile::sm80::load_now<true>(flags + from) : atomicAdd(flags + from, 0u);
      }
      for (int i = 0; i < barriers; ++i) __syncthreads();
      flag = *seen;
      __syncthreads();
    }
  }
  if (threadIdx.x != 0) return;
  out[blockIdx.x] = (blockIdx.x == 0 ? 0 : out[blockIdx.x - 1]) + 1;
  atomicExch(flags + blockIdx.x, 1u);
}
// Writes or reads an element behind or before an array.
extern "C" __global__ void access(unsigned* array, int64_t at, int store) {
  if (threadIdx.x + 2 != blockDim.x) return;
  if (store) {
    array[at] = 1;
  } else if (array[at] == 77) {
    array[0] = 1;
  }
}
extern "C" __global__ void recurse(unsigned* array, int depth) {
  volatile unsigned room[512];
  room[depth % 512] = array[0] + depth;
  if (depth > 0) recurse(array, depth - 1);
  array[0] += room[depth % 512];
}
)";

class Waits : public EmulatorTest {
 protected:
  std::string chain(unsigned blocks, int step, int load_flags, int barriers = 1, unsigned threads = 64) {
    auto flags = buffer(blocks * 4), out = buffer(blocks * 4);
    const std::vector<unsigned> zero(blocks, 0);
    flags.write(zero.data(), blocks * 4);
    const std::string text =
        failure("chain", blocks, threads, 16, flags.address(), out.address(), step, load_flags, barriers);
    if (!text.empty()) return text;
    const auto got = read<unsigned>(out);
    for (unsigned i = 0; i < blocks; ++i) EXPECT_EQ(got[i], i + 1);
    return "";
  }
};

TEST_F(Waits, BlocksGoOnWhileOneSpins) {
  load(kChain);
  for (int seed = 1; seed <= 5; ++seed) {
    const Variable seeds("HEDDLE_EMULATOR_SEED", std::to_string(seed));
    EXPECT_EQ(chain(40, -1, 1), "") << seed;
    EXPECT_EQ(chain(40, -1, 0, 3), "") << seed;
  }
}

TEST_F(Waits, BlocksStartInOrderWhereNotAllFit) {
  const Variable sms("HEDDLE_EMULATED_SMS", "1");
  load(kChain);
  EXPECT_EQ(chain(150, -1, 1), "");
  EXPECT_EQ(chain(150, -1, 0), "");
}

TEST_F(Waits, ADeadlockIsNamed) {
  const Variable sms("HEDDLE_EMULATED_SMS", "1");
  load(kChain);
  for (const int load_flags : {0, 1}) {
    // Of two threads each: it takes some hundred thousand rounds until they are known to wait for ever.
    const std::string text = chain(40, 1, load_flags, 1, 2);
    EXPECT_NE(text.find("kernel chain: deadlock in 32 block(s), 8 not started"), std::string::npos) << text;
    EXPECT_NE(text.find("32 thread(s) wait for a value in memory"), std::string::npos) << text;
    EXPECT_NE(text.find("block (0, 0, 0)"), std::string::npos) << text;
  }
}

TEST_F(Waits, AccessesOutsideOfMemoryAreNamed) {
  load(kChain);
  auto array = buffer(4096);
  const auto text = [&](int64_t at, int store) { return failure("access", 2, 64, 0, array.address(), at, store); };
  const std::string store = text(1 << 20, 1), before = text(-(1 << 20), 1), loaded = text(1 << 20, 0);
  EXPECT_NE(store.find("kernel access: thread (62, 0, 0) of block ("), std::string::npos) << store;
  EXPECT_NE(store.find("writes to address 0x"), std::string::npos) << store;
  EXPECT_NE(store.find("4190208 bytes behind the end of an allocation of 4096 bytes"), std::string::npos) << store;
  EXPECT_NE(before.find("4194304 bytes before an allocation of 4096 bytes"), std::string::npos) << before;
  EXPECT_NE(loaded.find("reads from address 0x"), std::string::npos) << loaded;
  EXPECT_NE(text(int64_t{1} << 50, 1).find("where no memory can be"), std::string::npos);
  EXPECT_EQ(text(1023, 1), "") << "the device works on";
}

TEST_F(Waits, AStackThatOverflowsIsNamed) {
  load(kChain);
  auto array = buffer(4);
  EXPECT_NE(failure("recurse", 1, 1, 0, array.address(), 1000).find("where there is no memory"), std::string::npos);
  EXPECT_EQ(failure("recurse", 1, 1, 0, array.address(), 3), "");
}

}  // namespace
}  // namespace heddle::emulator
