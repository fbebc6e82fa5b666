// Multiplication by wgmma of f32 tiles in shared memory, with each number split into two tf32 parts
// (tile/kernel/cuda/operand/split_tf32.h). Each row of a tile has 128 bytes along k and is swizzled as by TMA. A tile
// of B is split in shared memory; A is split in registers.
#pragma once

#include "tile/arch/sm80/ldmatrix.h"
#include "tile/arch/sm80/shared.h"
#include "tile/arch/sm90/barrier.h"
#include "tile/arch/sm90/wgmma_registers.h"
#include "tile/core/cuda_gemm.h"
#include "tile/kernel/cuda/operand/split_tf32.h"
#include "tile/kernel/cuda/row.h"

namespace heddle::tile::sm90 {

// Splits a tile of B, of `Bytes` bytes, into two tf32 parts. `Threads` threads divide the tile among themselves; the
// index of the first of them is a multiple of `Threads`. The high parts replace the numbers in the tile. The low parts
// are stored at the same offsets in `low`. Returns true if FMA must multiply this warp's numbers; these numbers are
// then unchanged, and their low parts are zero. The stores are visible to the tensor cores.
template <int Bytes, int Threads>
__device__ inline bool split_tile(uint8_t* tile, uint8_t* low) {
  constexpr int kPieces = Bytes / 16 / Threads;
  static_assert(kPieces >= 1 && Bytes % (16 * Threads) == 0);
  using Four = cuda::Neighbours<uint32_t, 4>;
  const uint32_t first = threadIdx.x % Threads;
  auto* high = reinterpret_cast<Four*>(tile) + first;
  auto* rest = reinterpret_cast<Four*>(low) + first;
  Four x[kPieces];
  float most = 0;
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    x[i] = high[i * Threads];
#pragma unroll
    for (int j = 0; j < 4; ++j) most = cuda::larger_magnitude(most, x[i].x[j]);
  }
  const bool by_fma = cuda::leaves_range(most);
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    Four h, l;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const auto parts = cuda::split_float(x[i].x[j]);
      h.x[j] = by_fma ? x[i].x[j] : parts.high;
      l.x[j] = by_fma ? 0 : parts.low;
    }
    high[i * Threads] = h;
    rest[i * Threads] = l;
  }
  fence_async_shared();
  return by_fma;
}

// The 16 rows of A that a warp multiplies. They begin with row `first` of the tile.
class SplitRows {
 public:
  __device__ explicit SplitRows(uint32_t first)
      : place_(swizzle<kGemmRowBytes>((first + threadIdx.x % 16) * kGemmRowBytes + threadIdx.x % 32 / 16 * 16)) {}

  __device__ void read(const uint8_t* tile) {
    const uint32_t at = shared_address(tile);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) sm80::load_matrices<false>(x_[step], at + (place_ ^ step * 32));
  }
  // The largest magnitude of the numbers that read() loaded.
  __device__ float largest() const {
    float most = 0;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < 4; ++i) most = cuda::larger_magnitude(most, x_[step][i]);
    }
    return most;
  }
  // Tells the compiler that the registers of multiply() can be reused. Call it after wgmma_wait(): until then, the
  // tensor cores read these registers.
  __device__ void release() {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        fence_operand(high_[step][i]);
        fence_operand(low_[step][i]);
      }
    }
  }
  // Splits the numbers that read() loaded, for the next multiply().
  __device__ void take_apart() {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const auto parts = cuda::split_float(x_[step][i]);
        high_[step][i] = parts.high, low_[step][i] = parts.low;
      }
    }
  }
  // Issues the products with a tile of B. `high` and `low` are the shared-memory addresses of the tile's parts. There
  // are three kinds of products: low x high, high x low and high x high. With Chains = 1 they are added to one
  // accumulator. With Chains = 3 each kind has its own accumulator, so that short instructions do not wait for each
  // other. The small products are issued first.
  template <int N, int Chains>
  __device__ void multiply(float (&sums)[Chains][N / 2], uint32_t high, uint32_t low) const {
    using Instruction = WgmmaRegisters<tf32, N>;
    static_assert(Chains == 1 || Chains == 3);
    constexpr bool kApart = Chains == 3;
    const uint64_t high_b = make_smem_descriptor(high, true, 0), low_b = make_smem_descriptor(low, true, 0);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      Instruction::template issue<false>(sums[0], low_[step], high_b + step * 2, step != 0);
      Instruction::template issue<false>(sums[kApart ? 1 : 0], high_[step], low_b + step * 2, !kApart || step != 0);
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      Instruction::template issue<false>(sums[Chains - 1], high_[step], high_b + step * 2, !kApart || step != 0);
    }
  }

 private:
  static constexpr int kSteps = 4;  // each step is 32 bytes of k
  uint32_t place_;
  uint32_t x_[kSteps][4], high_[kSteps][4], low_[kSteps][4];
};

// Adds the accumulators of all chains to `acc`. Call it after wgmma_wait().
template <int Count, int Chains>
__device__ inline void add_sums(float (&acc)[Count], float (&sums)[Chains][Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) {
#pragma unroll
    for (int chain = 0; chain < Chains; ++chain) fence_operand(sums[chain][i]);
    float sum = sums[0][i];
#pragma unroll
    for (int chain = 1; chain < Chains; ++chain) sum += sums[chain][i];
    acc[i] += sum;
  }
}

// Computes a warpgroup's sums by FMA. `a` points to the warp's 16 rows of A. `high` and `low` are the two parts of a
// tile of B, whose sum is the original number.
template <int TileN>
__device__ inline void multiply_tile_by_fma(float (&acc)[TileN / 2], const uint8_t* a, const uint8_t* high,
                                            const uint8_t* low) {
  const uint32_t lane = threadIdx.x % 32;
  const auto number = [](const uint8_t* tile, uint32_t row, uint32_t k) {
    return *reinterpret_cast<const float*>(tile + swizzle<kGemmRowBytes>(row * kGemmRowBytes + k * 4));
  };
#pragma unroll 1
  for (uint32_t k = 0; k < kGemmRowBytes / 4; ++k) {
    const float a0 = number(a, lane / 4, k), a1 = number(a, lane / 4 + 8, k);
#pragma unroll
    for (int j = 0; j < TileN / 8; ++j) {
      const uint32_t row = 8 * j + lane % 4 * 2;
      const float b0 = number(high, row, k) + number(low, row, k);
      const float b1 = number(high, row + 1, k) + number(low, row + 1, k);
      acc[4 * j] += a0 * b0;
      acc[4 * j + 1] += a0 * b1;
      acc[4 * j + 2] += a1 * b0;
      acc[4 * j + 3] += a1 * b1;
    }
  }
}

}  // namespace heddle::tile::sm90
