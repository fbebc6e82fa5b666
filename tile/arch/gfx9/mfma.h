// Matrix products by a wave of 64 lanes (MFMA), from gfx90a on: 16 x 16 sums, with sixteen elements of k for 16-bit
// operands, four for f32 and f64, and sixteen or thirty-two for bytes.
#pragma once

#include "tile/core/types.h"

namespace heddle::tile::gfx9 {

// issue(): d += a b^T. Lane l has the elements of row row_of(l % 16) of a and of row l % 16 of b whose k begins at
// l / 16 * kLane. It gets the sums of the rows l / 16 * 4 to l / 16 * 4 + 3 of a, with row l % 16 of b.
template <typename In>
struct Mfma;

// What all instructions have in common. The lanes are kParts groups, each with other elements of k.
struct MfmaShape {
  static constexpr int kLanes = 64, kParts = 4, kSums = 4;
};
// The sums of a lane are those of neighbouring rows.
struct RowsInOrder : MfmaShape {
  __device__ static int row_of(int line) { return line; }
};

// Calls a builtin with the sums as a vector.
template <typename Sum, typename F>
__device__ __forceinline__ void add_by(Sum (&d)[4], F builtin) {
  typedef Sum Sums __attribute__((ext_vector_type(4)));
  const Sums r = builtin(Sums{d[0], d[1], d[2], d[3]});
#pragma unroll
  for (int i = 0; i < 4; ++i) d[i] = r[i];
}

template <>
struct Mfma<half> : RowsInOrder {
  using Piece = uint64_t;
  using Sum = float;
  static constexpr int kLane = 4, kK = 16;
  __device__ static void issue(float (&d)[4], Piece a, Piece b) {
    typedef _Float16 Halves __attribute__((ext_vector_type(4)));
    add_by(
        d, [&](auto sums) __attribute__((always_inline)) {
          return __builtin_amdgcn_mfma_f32_16x16x16f16(__builtin_bit_cast(Halves, a), __builtin_bit_cast(Halves, b),
                                                       sums, 0, 0, 0);
        });
  }
};
template <>
struct Mfma<bfloat> : RowsInOrder {
  using Piece = uint64_t;
  using Sum = float;
  static constexpr int kLane = 4, kK = 16;
  __device__ static void issue(float (&d)[4], Piece a, Piece b) {
    typedef short Bfloats __attribute__((ext_vector_type(4)));
    add_by(
        d, [&](auto sums) __attribute__((always_inline)) {
          return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(__builtin_bit_cast(Bfloats, a),
                                                           __builtin_bit_cast(Bfloats, b), sums, 0, 0, 0);
        });
  }
};
template <>
struct Mfma<float> : RowsInOrder {
  using Piece = uint32_t;
  using Sum = float;
  static constexpr int kLane = 1, kK = 4;
  __device__ static void issue(float (&d)[4], Piece a, Piece b) {
    add_by(
        d, [&](auto sums) __attribute__((always_inline)) {
          return __builtin_amdgcn_mfma_f32_16x16x4f32(__builtin_bit_cast(float, a), __builtin_bit_cast(float, b), sums,
                                                      0, 0, 0);
        });
  }
};
template <>
struct Mfma<double> : MfmaShape {
  using Piece = uint64_t;
  using Sum = double;
  static constexpr int kLane = 1, kK = 4;
  // The sums of a lane are those of every fourth row of the instruction.
  __device__ static int row_of(int line) { return line % 4 * 4 + line / 4; }
  __device__ static void issue(double (&d)[4], Piece a, Piece b) {
    add_by(
        d, [&](auto sums) __attribute__((always_inline)) {
          return __builtin_amdgcn_mfma_f64_16x16x4f64(__builtin_bit_cast(double, a), __builtin_bit_cast(double, b),
                                                      sums, 0, 0, 0);
        });
  }
};
template <>
struct Mfma<int8_t> : RowsInOrder {
  using Sum = int32_t;
#if defined(__gfx90a__)
  using Piece = uint32_t;
  static constexpr int kLane = 4, kK = 16;
  __device__ static void issue(int32_t (&d)[4], Piece a, Piece b) {
    add_by(
        d, [&](auto sums) __attribute__((always_inline)) {
          return __builtin_amdgcn_mfma_i32_16x16x16i8(static_cast<int>(a), static_cast<int>(b), sums, 0, 0, 0);
        });
  }
#else
  using Piece = uint64_t;
  static constexpr int kLane = 8, kK = 32;
  __device__ static void issue(int32_t (&d)[4], Piece a, Piece b) {
    add_by(
        d, [&](auto sums) __attribute__((always_inline)) {
          return __builtin_amdgcn_mfma_i32_16x16x32_i8(static_cast<long>(a), static_cast<long>(b), sums, 0, 0, 0);
        });
  }
#endif
};

}  // namespace heddle::tile::gfx9
