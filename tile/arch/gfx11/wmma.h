// Matrix products by a wave of 32 lanes (WMMA), on RDNA 3 and RDNA 4: 16 x 16 sums with sixteen elements of k.
#pragma once

#include "tile/core/types.h"

namespace heddle::tile::gfx11 {

#if defined(__gfx1200__) || defined(__gfx1201__)
// The two halves of the wave have eight elements of k each. The sums of a lane are those of neighbouring rows.
#define TILE_WMMA(NAME) __builtin_amdgcn_wmma_f32_16x16x16_##NAME##_w32_gfx12
struct WmmaShape {
  static constexpr int kLane = 8, kParts = 2;
  __device__ static int row_of(int line) { return line; }
};
#else
// Both halves of the wave have all elements of k. The sums of a lane are those of every other row.
#define TILE_WMMA(NAME) __builtin_amdgcn_wmma_f32_16x16x16_##NAME##_w32
struct WmmaShape {
  static constexpr int kLane = 16, kParts = 1;
  __device__ static int row_of(int line) { return line % 2 * 8 + line / 2; }
};
#endif

// issue(): d += a b^T. Lane l has the elements of row row_of(l % 16) of a and of row l % 16 of b whose k begins at
// l / 16 % kParts * kLane. It gets the sums of the rows l / 16 * 8 to l / 16 * 8 + 7 of a, with row l % 16 of b.
template <typename In, typename Element>
struct WmmaOf : WmmaShape {
  struct alignas(16) Piece {
    In x[kLane];
  };
  using Sum = float;
  typedef Element Elements __attribute__((ext_vector_type(kLane)));
  typedef float Sums __attribute__((ext_vector_type(8)));
  static constexpr int kLanes = 32, kK = 16, kSums = 8;

  template <typename F>
  __device__ __forceinline__ static void add_by(float (&d)[8], F builtin) {
    const Sums r = builtin(Sums{d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7]});
#pragma unroll
    for (int i = 0; i < 8; ++i) d[i] = r[i];
  }
};

template <typename In>
struct Wmma;
template <>
struct Wmma<half> : WmmaOf<half, _Float16> {
  __device__ static void issue(float (&d)[8], const Piece& a, const Piece& b) {
    add_by(
        d, [&](Sums sums) __attribute__((always_inline)) {
          return TILE_WMMA(f16)(__builtin_bit_cast(Elements, a), __builtin_bit_cast(Elements, b), sums);
        });
  }
};
template <>
struct Wmma<bfloat> : WmmaOf<bfloat, short> {
  __device__ static void issue(float (&d)[8], const Piece& a, const Piece& b) {
    add_by(
        d, [&](Sums sums) __attribute__((always_inline)) {
          return TILE_WMMA(bf16)(__builtin_bit_cast(Elements, a), __builtin_bit_cast(Elements, b), sums);
        });
  }
};
#undef TILE_WMMA

}  // namespace heddle::tile::gfx11
