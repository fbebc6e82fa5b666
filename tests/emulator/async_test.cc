// Copies, barriers that count bytes, TMA and the tensor cores: right when they are waited for, wrong or
// refused when they are not.
#include <array>
#include <cmath>
#include <random>

#include "fixture.h"
#include "heddle/dtype.h"

namespace heddle::emulator {
namespace {

// Small integers, exact in every type.
std::vector<float> small_numbers(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 9) - 4);
  return values;
}
std::vector<uint16_t> as_halves(const std::vector<float>& values) {
  std::vector<uint16_t> bits;
  for (const float value : values) bits.push_back(static_cast<uint16_t>(encode_float(DType::kF16, value)));
  return bits;
}

struct alignas(64) Map {
  std::array<uint64_t, 16> words;
};

class Async : public EmulatorTest {
 protected:
  struct Uploaded : runtime::CudaBuffer {
    Uploaded(const runtime::CudaContext& context, const void* from, size_t bytes) : CudaBuffer(context, bytes) {
      write(from, bytes);
    }
  };
  Uploaded upload(const void* from, size_t bytes) { return Uploaded(*context, from, bytes); }
  // A matrix of 16-bit elements in boxes of `rows` rows of `width` bytes.
  Map map_of(uint64_t address, uint64_t columns, uint64_t lines, uint32_t width, uint32_t rows) {
    Map map{};
    const uint64_t extents[3] = {columns, lines, 1}, strides[2] = {(columns * 2 + 15) / 16 * 16, 1 << 20};
    const uint32_t box[3] = {width / 2, rows, 1}, ones[3] = {1, 1, 1};
    const int swizzle = width == 128 ? 3 : width == 64 ? 2 : width == 32 ? 1 : 0;
    const CudaDriver& driver = context->driver();
    driver.check(
        driver.tensor_map(&map, 6, 3, reinterpret_cast<void*>(address), extents, strides, box, ones, 0, swizzle, 0, 0),
        "map");
    return map;
  }
};

TEST_F(Async, CopiesOfAThread) {
  load(R"(
#include "tile/arch/sm80/cp_async.h"
#include "tile/arch/sm80/shared.h"
namespace tile = heddle::tile;
extern "C" __global__ void copy(const float* from, float* to, int wait) {
  extern __shared__ float stage[];
  float* mine = stage + threadIdx.x * 4;
  tile::sm80::copy_async<16>(tile::cuda::shared_address(mine), from + threadIdx.x * 4, threadIdx.x == 3 ? 8 : 16);
  tile::sm80::commit_copies();
  if (wait) tile::sm80::wait_copies<0>();
  __syncthreads();
  const int other = (threadIdx.x + 1) % blockDim.x;
  for (int i = 0; i < 4; ++i) to[other * 4 + i] = stage[other * 4 + i];
}
)");
  const auto values = small_numbers(256, 1);
  auto from = upload(values.data(), 1024);
  auto to = buffer(1024);
  auto expected = values;
  expected[14] = expected[15] = 0;
  launch("copy", 1, 64, 1024, from.address(), to.address(), 1);
  EXPECT_EQ(read<float>(to), expected);
  launch("copy", 1, 64, 1024, from.address(), to.address(), 0);
  EXPECT_NE(read<float>(to), expected);
}

TEST_F(Async, MatrixInstructionOfAWarp) {
  load(R"(
#include "tile/arch/sm80/ldmatrix.h"
#include "tile/arch/sm80/mma.h"
#include "tile/arch/sm80/shared.h"
namespace tile = heddle::tile;
// a: 16 x 16 by rows, b: 16 (k) x 8 by rows.
extern "C" __global__ void mma(const tile::half* a, const tile::half* b, float* d) {
  extern __shared__ tile::half stage[];
  const int lane = threadIdx.x;
  for (int i = lane; i < 256; i += 32) stage[i] = a[i];
  for (int i = lane; i < 128; i += 32) stage[256 + i] = b[i];
  __syncwarp();
  const uint32_t base = tile::cuda::shared_address(stage);
  uint32_t fa[4], fb[2];
  tile::sm80::load_matrices<false>(fa, base + (lane % 16 * 16 + lane / 16 * 8) * 2);
  tile::sm80::load_matrices<true>(fb, base + 512 + lane % 16 * 16);
  float sums[4] = {1, 1, 1, 1};
  tile::sm80::Mma<tile::half>::issue(sums, fa, fb);
  for (int i = 0; i < 4; ++i) d[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sums[i];
}
)");
  const auto a = small_numbers(256, 2), b = small_numbers(128, 3);
  auto a_bits = as_halves(a), b_bits = as_halves(b);
  auto da = upload(a_bits.data(), 512), db = upload(b_bits.data(), 256);
  auto dd = buffer(512);
  launch("mma", 1, 32, 768, da.address(), db.address(), dd.address());
  const auto d = read<float>(dd);
  for (size_t row = 0; row < 16; ++row) {
    for (size_t column = 0; column < 8; ++column) {
      float sum = 1;
      for (size_t k = 0; k < 16; ++k) sum += a[row * 16 + k] * b[k * 8 + column];
      EXPECT_EQ(d[row * 8 + column], sum) << row << " " << column;
    }
  }
}

// One warpgroup, one product of 64 x 16 x 16 of operands that TMA brings, along k and along m and n, with
// every swizzle. `skip`: 1 leaves out the wait for the copies, 2 the one for the product.
constexpr const char* kProduct = R"(
#include "tile/arch/sm90/tma.h"
#include "tile/arch/sm90/wgmma.h"
namespace tile = heddle::tile;
using namespace tile::sm90;
template <int Width>
__device__ uint64_t along_k(uint32_t address) {
  constexpr uint64_t kMode = Width == 128 ? 1 : Width == 64 ? 2 : Width == 32 ? 3 : 0;
  // Without a swizzle pieces of k lie apart: here the second box of 8 columns.
  const uint64_t leading = Width == 16 ? 64 * 16 : 16;
  return (address & 0x3ffff) >> 4 | leading >> 4 << 16 | uint64_t(8 * Width) >> 4 << 32 | kMode << 62;
}
template <int Width>
__device__ void product(const TensorMap& a, const TensorMap& b, float* d, int skip) {
  extern __shared__ uint8_t raw[];
  uint8_t* stage = raw + (-shared_address(raw) & 1023);
  uint8_t* stage_b = stage + 64 * 128;
  Barrier& full = *reinterpret_cast<Barrier*>(stage_b + 64 * 128);
  if (threadIdx.x == 0) {
    full.init(1);
    fence_barrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    constexpr int kBoxes = Width == 16 ? 2 : 1;
    full.arrive_expect(kBoxes * 2 * 64 * Width);
    for (int i = 0; i < kBoxes; ++i) {
      load_box(a, full, stage + i * 64 * 16, i * 8, 0, 0, CacheHint::kEvictNormal);
      load_box(b, full, stage_b + i * 64 * 16, i * 8, 0, 0, CacheHint::kEvictNormal);
    }
  }
  if (skip != 1) full.wait(0);
  float sums[8];
  wgmma_fence();
  Wgmma<tile::half, 16>::issue<false, false>(sums, along_k<Width>(shared_address(stage)),
                                             along_k<Width>(shared_address(stage_b)), 0);
  wgmma_commit();
  if (skip != 2) wgmma_wait<0>();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = 0; i < 8; ++i) {
    d[(warp * 16 + lane / 4 + i / 2 % 2 * 8) * 16 + i / 4 * 8 + lane % 4 * 2 + i % 2] = sums[i];
  }
  if (skip == 2) wgmma_wait<0>();
  full.wait(0);
}
)";

class Products : public Async, public testing::WithParamInterface<uint32_t> {};

TEST_P(Products, OperandsAlongK) {
  const uint32_t width = GetParam();
  const std::string name = "product_" + std::to_string(width);
  load(std::string(kProduct) + "extern \"C\" __global__ void " + name +
       "(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, float* d, int skip) {\n  product<" +
       std::to_string(width) + ">(a, b, d, skip);\n}\n");
  constexpr size_t kDepth = 64;
  const auto a = small_numbers(64 * kDepth, 4), b = small_numbers(64 * kDepth, 5);
  auto a_bits = as_halves(a), b_bits = as_halves(b);
  auto da = upload(a_bits.data(), a_bits.size() * 2), db = upload(b_bits.data(), b_bits.size() * 2);
  const Map map_a = map_of(da.address(), kDepth, 64, width, 64), map_b = map_of(db.address(), kDepth, 64, width, 64);
  std::vector<float> expected(64 * 16);
  for (size_t i = 0; i < expected.size(); ++i) {
    for (size_t k = 0; k < 16; ++k) expected[i] += a[i / 16 * kDepth + k] * b[i % 16 * kDepth + k];
  }
  constexpr unsigned kShared = 1024 + 2 * 64 * 128 + 8;
  auto dd = buffer(expected.size() * 4);
  launch(name.c_str(), 1, 128, kShared, map_a, map_b, dd.address(), 0);
  EXPECT_EQ(read<float>(dd), expected);
  bool wrong[3] = {};
  for (const char* seed : {"1", "2", "3", "4"}) {
    const Variable order("HEDDLE_EMULATOR_SEED", seed);
    for (const int skip : {1, 2}) {
      launch(name.c_str(), 1, 128, kShared, map_a, map_b, dd.address(), skip);
      wrong[skip] |= read<float>(dd) != expected;
    }
  }
  EXPECT_TRUE(wrong[1]) << "a missing wait for copies shows";
  EXPECT_TRUE(wrong[2]) << "a missing wait for the product shows";
}
INSTANTIATE_TEST_SUITE_P(Swizzles, Products, testing::Values(16u, 32u, 64u, 128u));

constexpr const char* kBoxes = R"(
#include "tile/arch/sm90/tma.h"
namespace tile = heddle::tile;
using namespace tile::sm90;
// A box of 32 bytes x 8 rows from (column, row) of one matrix to (to_column, to_row) of another.
extern "C" __global__ void move(const __grid_constant__ TensorMap from, const __grid_constant__ TensorMap to, int column,
                                int row, int to_column, int to_row, int defect) {
  extern __shared__ uint8_t raw[];
  uint8_t* stage = raw + (-shared_address(raw) & 1023);
  Barrier& full = *reinterpret_cast<Barrier*>(stage + 1024);
  if (defect != 1) full.init(defect == 2 ? 2 : 1);
  if (defect != 6) fence_barrier_init();
  full.arrive_expect(256);
  if (defect == 3) full.arrive();
  load_box(from, full, stage, column, row, 0, CacheHint::kEvictNormal);
  if (defect == 4) return;
  full.wait(0);
  if (defect != 7) fence_async_shared();
  store_box(to, stage, to_column, to_row, 0);
  commit_stores();
  if (defect != 5) wait_stores_read<0>();
}
)";

TEST_F(Async, BoxesAtTheEdges) {
  load(kBoxes);
  constexpr int kColumns = 40, kRows = 20;
  const auto values = small_numbers(kColumns * kRows, 6);
  const auto bits = as_halves(values);
  auto from = upload(bits.data(), bits.size() * 2);
  const Map source = map_of(from.address(), kColumns, kRows, 32, 8);
  const std::vector<uint16_t> blank(kColumns * kRows, 7);
  for (const auto& [column, row, to_column, to_row] :
       {std::array{0, 0, 0, 0}, std::array{-3, -2, 8, 3}, std::array{33, 15, 30, 17}, std::array{100, 0, 5, -4}}) {
    auto to = upload(blank.data(), blank.size() * 2);
    const Map target = map_of(to.address(), kColumns, kRows, 32, 8);
    launch("move", 1, 1, 2048 + 64, source, target, column, row, to_column, to_row, 0);
    auto expected = blank;
    for (int r = 0; r < 8; ++r) {
      for (int c = 0; c < 16; ++c) {
        const int x = column + c, y = row + r, tx = to_column + c, ty = to_row + r;
        if (tx < 0 || tx >= kColumns || ty < 0 || ty >= kRows) continue;
        const bool inside = x >= 0 && x < kColumns && y >= 0 && y < kRows;
        expected[ty * kColumns + tx] = inside ? bits[y * kColumns + x] : uint16_t{0};
      }
    }
    EXPECT_EQ(read<uint16_t>(to), expected) << column << " " << row;
  }
}

TEST_F(Async, DefectsOfBarriersAndBoxesAreNamed) {
  load(kBoxes);
  auto memory = buffer(40 * 20 * 2);
  const Map map = map_of(memory.address(), 40, 20, 32, 8);
  const auto defect = [&](int which) { return failure("move", 1, 1, 2048 + 64, map, map, 0, 0, 0, 0, which); };
  EXPECT_EQ(defect(0), "");
  EXPECT_NE(defect(1).find("before it is initialised"), std::string::npos) << defect(1);
  EXPECT_NE(defect(2).find("deadlock"), std::string::npos) << defect(2);
  EXPECT_NE(defect(2).find("1 thread(s) wait for the barrier at shared address"), std::string::npos) << defect(2);
  EXPECT_NE(defect(3).find("more arrivals"), std::string::npos) << defect(3);
  EXPECT_NE(defect(4).find("a block ended while a copy of a box"), std::string::npos) << defect(4);
  EXPECT_NE(defect(5).find("a block ended while a copy of a box"), std::string::npos) << defect(5);
  EXPECT_NE(defect(6).find("without fence_barrier_init()"), std::string::npos) << defect(6);
  EXPECT_NE(defect(7).find("without fence_async_shared()"), std::string::npos) << defect(7);
}

TEST_F(Async, TensorMapsKeepTheDriversRules) {
  auto memory = buffer(4096);
  EXPECT_THROW(map_of(memory.address() + 8, 40, 20, 32, 8), Error);
  EXPECT_THROW(map_of(memory.address(), 40, 20, 32, 257), Error);
  EXPECT_THROW(map_of(memory.address(), 0, 20, 32, 8), Error);
  // A map that is larger than the memory behind it.
  load(kBoxes);
  const Map map = map_of(memory.address(), 40, 2000, 32, 8);
  EXPECT_NE(failure("move", 1, 1, 2048 + 64, map, map, 0, 1000, 0, 0, 0).find("outside of the memory"),
            std::string::npos);
}

TEST_F(Async, BlocksOfAClusterMeet) {
  load(R"(
#include "tile/arch/sm90/barrier.h"
namespace tile = heddle::tile;
using namespace tile::sm90;
extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(64) meet(int* out, int* seen) {
  extern __shared__ uint64_t words[];
  Barrier& others = *reinterpret_cast<Barrier*>(words);
  if (threadIdx.x == 0) {
    others.init(4);
    fence_barrier_init();
  }
  cluster_sync();
  out[blockIdx.x * 64 + threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x < 4) others.arrive_at(threadIdx.x);
  others.wait(0);
  cluster_sync();
  if (threadIdx.x == 0) seen[blockIdx.x] = cluster_rank() * 10 + out[(blockIdx.x / 4 * 4 + (blockIdx.x + 1) % 4) * 64];
}
)");
  auto out = buffer(8 * 64 * 4), seen = buffer(8 * 4);
  launch("meet", 8, 64, 64, out.address(), seen.address());
  const auto got = read<int>(seen);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(got[i], i % 4 * 10 + 1);
  EXPECT_NE(failure("meet", 6, 64, 64, out.address(), seen.address()), "") << "6 is no multiple of 4";
}

constexpr const char* kStores = R"(
#include "tile/arch/sm90/cluster.h"
namespace tile = heddle::tile;
using namespace tile::sm90;
// Every thread tells every block its number; the blocks add up what they heard, in two rounds.
extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(32) tell(float* sums, int defect) {
  extern __shared__ uint64_t words[];
  Barrier* barriers = reinterpret_cast<Barrier*>(words);
  float* heard = reinterpret_cast<float*>(words + 2);
  const int thread = threadIdx.x, rank = cluster_rank();
  if (thread < 2) barriers[thread].init(1);
  if (defect != 1) fence_barrier_init();
  cluster_sync();
  for (int round = 0; round < 2; ++round) {
    if (thread == 0) barriers[round].arrive_expect(128 * 4);
    const float number = rank * 32 + thread + round;
    for (int to = 0; to < 4; ++to) {
      store_async(heard + round * 128 + rank * 32 + thread + (defect == 2 ? 300 : 0), number, &barriers[round], to);
    }
    if (defect == 3) return;
    barriers[round].wait(0);
    float sum = 0;
    for (int i = 0; i < 128; ++i) sum += heard[round * 128 + i];
    sums[(blockIdx.x * 32 + thread) * 2 + round] = sum;
  }
  cluster_sync();
}
)";

TEST_F(Async, StoresIntoBlocksOfACluster) {
  load(kStores);
  auto sums = buffer(8 * 32 * 2 * 4);
  launch("tell", 8, 32, 16 + 2 * 128 * 4, sums.address(), 0);
  const auto got = read<float>(sums);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], 127.0f * 64 + 128.0f * static_cast<float>(i % 2)) << i;
}

TEST_F(Async, DefectsOfStoresAreNamed) {
  load(kStores);
  auto sums = buffer(8 * 32 * 2 * 4);
  const auto defect = [&](int which) { return failure("tell", 8, 32, 16 + 2 * 128 * 4, sums.address(), which); };
  EXPECT_NE(defect(1).find("without fence_barrier_init()"), std::string::npos) << defect(1);
  EXPECT_NE(defect(2).find("outside of the block's"), std::string::npos) << defect(2);
  const std::string early = defect(3);
  EXPECT_TRUE(early.find("on its way") != std::string::npos || early.find("after its end") != std::string::npos)
      << early;
}

TEST_F(Async, MisalignedAccessesAreRefused) {
  load(R"(
#include "tile/op/cuda/stitch.h"
namespace tile = heddle::tile;
extern "C" __global__ void copy(const float* from, float* to, int in, int out) {
  tile::store<4>(to + out, tile::load<4, 4>(from + in));
}
extern "C" __global__ void plain(const float* from, float* to, int in, int out) {
  *reinterpret_cast<float4*>(to + out) = *reinterpret_cast<const float4*>(from + in);
}
)");
  auto memory = buffer(64), other = buffer(64);
  for (const char* kernel : {"copy", "plain"}) launch(kernel, 1, 1, 0, memory.address(), other.address(), 4, 8);
  for (const char* kernel : {"copy", "plain"}) {
    for (const auto& [in, out] : {std::array{1, 0}, std::array{0, 2}}) {
      const std::string why = failure(kernel, 1, 1, 0, memory.address(), other.address(), in, out);
      EXPECT_NE(why.find("misaligned access to memory"), std::string::npos) << why;
      EXPECT_NE(why.find("no multiple of 16 bytes"), std::string::npos) << why;
    }
  }
}

}  // namespace
}  // namespace heddle::emulator
