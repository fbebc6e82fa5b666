// Products of f32 on tensor cores. A number is split into the sum of two tf32 numbers: the number rounded to 11 bits,
// and the remainder, of which the instruction reads 11 bits. Of the four products of the parts of two numbers, the
// product of the two remainders is omitted, since it is below 2^-22 of the whole. Tensor cores truncate sums that
// ordinary arithmetic rounds. So each instruction starts with a zero accumulator, and ordinary arithmetic adds its
// result (Ootomo and Yokota, Recovering single precision accuracy from Tensor Cores, 2022).
//
// The parts of NaN are NaN. Some numbers are multiplied by FMA instructions instead: infinities, whose remainder would
// be NaN, and very large or very small numbers, whose parts, products or sums of products would leave the range of
// tf32.
#pragma once

#include "tile/arch/sm80/mma.h"

namespace heddle::tile::cuda {

struct SplitFloat {
  uint32_t high, low;
};
__device__ inline SplitFloat split_float(uint32_t x) {
  const uint32_t high = (x + 0x1000) & 0xffffe000;
  return {high, __float_as_uint(__uint_as_float(x) - __uint_as_float(high))};
}

// The range of magnitudes that tensor cores multiply, as the bits of floats: 2^-90 to 2^60. It is enough that the
// largest of several numbers is in this range: errors of the smaller numbers are far below the last bit of the sums.
inline constexpr uint32_t kLeastSplit = (127u - 90) << 23, kMostSplit = (127u + 60) << 23;

// Returns the larger of the magnitudes `most` and |x|, where x has the bits of a float. NaN is ignored.
__device__ inline float larger_magnitude(float most, uint32_t x) {
  return fmaxf(most, fabsf(__uint_as_float(x)));
}
// True if FMA instead of tensor cores must multiply numbers. `most` is their largest magnitude.
__device__ inline bool is_beyond_range(float most) {
  const uint32_t largest = __float_as_uint(most);
  return largest != 0 && largest - kLeastSplit > kMostSplit - kLeastSplit;
}
// True if FMA instead of tensor cores must multiply the numbers of a warp. `most` is the largest magnitude in this
// lane. All lanes of the warp must call this function.
__device__ inline bool leaves_range(float most) {
  return is_beyond_range(__uint_as_float(__reduce_max_sync(0xffffffffu, __float_as_uint(most))));
}

}  // namespace heddle::tile::cuda

namespace heddle::tile::sm80 {

// The tensor-core instruction for f32 operands in the kernels. The operands are f32 as stored in memory.
template <>
struct Mma<cuda::tf32x2, cuda::tf32x2> {
  using Acc = float;
  static constexpr int kK = 8;
  __device__ static void issue(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    uint32_t high_a[4], low_a[4], high_b[2], low_b[2];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const auto parts = cuda::split_float(a[i]);
      high_a[i] = parts.high, low_a[i] = parts.low;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const auto parts = cuda::split_float(b[i]);
      high_b[i] = parts.high, low_b[i] = parts.low;
    }
    float sum[4] = {0, 0, 0, 0};
    Mma<cuda::tf32>::issue(sum, low_a, high_b);
    Mma<cuda::tf32>::issue(sum, high_a, low_b);
    Mma<cuda::tf32>::issue(sum, high_a, high_b);
#pragma unroll
    for (int i = 0; i < 4; ++i) d[i] += sum[i];
  }
};

// Computes the products of Mma<tf32x2, tf32x2> by FMA, for all blocks of a warp. The code is short since it rarely
// runs.
template <int BlocksM, int BlocksN>
__device__ inline void multiply_by_fma(float (&d)[BlocksM][BlocksN][4], const uint32_t (&a)[BlocksM][4],
                                       const uint32_t (&b)[BlocksN][2]) {
  const uint32_t lane = threadIdx.x % 32;
#pragma unroll 1
  for (uint32_t k = 0; k < 8; ++k) {
    const auto from = [&](uint32_t first, uint32_t second, uint32_t line) {
      const uint32_t word = k < 4 ? first : second;
      return __uint_as_float(__shfl_sync(0xffffffffu, word, static_cast<int>(line * 4 + k % 4)));
    };
    float of_b[BlocksN][2];
#pragma unroll
    for (int j = 0; j < BlocksN; ++j) {
#pragma unroll
      for (uint32_t c = 0; c < 2; ++c) of_b[j][c] = from(b[j][0], b[j][1], lane % 4 * 2 + c);
    }
#pragma unroll
    for (int i = 0; i < BlocksM; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float of_a = from(a[i][h], a[i][2 + h], lane / 4);
#pragma unroll
        for (int j = 0; j < BlocksN; ++j) {
#pragma unroll
          for (int c = 0; c < 2; ++c) d[i][j][2 * h + c] += of_a * of_b[j][c];
        }
      }
    }
  }
}

}  // namespace heddle::tile::sm80
