// Matrix products by a wave of 64 lanes (MFMA), from gfx90a on: 16 x 16 sums, with sixteen elements of k for 16-bit
// operands and four for f32.
#pragma once

#include "tile/core/types.h"

namespace heddle::tile::gfx9 {

// issue(): d += a b^T. Lane l has the elements of row l % 16 of a and of row l % 16 of b whose k begins at l / 16 *
// kLane. It gets the sums of the rows l / 16 * 4 to l / 16 * 4 + 3 of a, with row l % 16 of b.
template <typename In>
struct Mfma;

template <>
struct Mfma<half> {
  using Piece = uint64_t;
  static constexpr int kLane = 4, kK = 16;
  __device__ static void issue(float (&d)[4], Piece a, Piece b) {
    typedef _Float16 Halves __attribute__((ext_vector_type(4)));
    typedef float Sums __attribute__((ext_vector_type(4)));
    const Sums r = __builtin_amdgcn_mfma_f32_16x16x16f16(__builtin_bit_cast(Halves, a), __builtin_bit_cast(Halves, b),
                                                         Sums{d[0], d[1], d[2], d[3]}, 0, 0, 0);
#pragma unroll
    for (int i = 0; i < 4; ++i) d[i] = r[i];
  }
};
template <>
struct Mfma<bfloat> {
  using Piece = uint64_t;
  static constexpr int kLane = 4, kK = 16;
  __device__ static void issue(float (&d)[4], Piece a, Piece b) {
    typedef short Bfloats __attribute__((ext_vector_type(4)));
    typedef float Sums __attribute__((ext_vector_type(4)));
    const Sums r = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(
        __builtin_bit_cast(Bfloats, a), __builtin_bit_cast(Bfloats, b), Sums{d[0], d[1], d[2], d[3]}, 0, 0, 0);
#pragma unroll
    for (int i = 0; i < 4; ++i) d[i] = r[i];
  }
};
template <>
struct Mfma<float> {
  using Piece = uint32_t;
  static constexpr int kLane = 1, kK = 4;
  __device__ static void issue(float (&d)[4], Piece a, Piece b) {
    typedef float Sums __attribute__((ext_vector_type(4)));
    const Sums r = __builtin_amdgcn_mfma_f32_16x16x4f32(__builtin_bit_cast(float, a), __builtin_bit_cast(float, b),
                                                        Sums{d[0], d[1], d[2], d[3]}, 0, 0, 0);
#pragma unroll
    for (int i = 0; i < 4; ++i) d[i] = r[i];
  }
};

}  // namespace heddle::tile::gfx9
