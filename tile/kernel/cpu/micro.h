// The register-blocked inner kernel that GEMM and convolution share.
#pragma once

#include "tile/arch/cpu/vec.h"
#include "tile/core/static_for.h"

namespace heddle::tile {

// Registers: 14 x 2 accumulators leave room for two vectors of B and one of A among 32; 6 x 2 among 16.
inline constexpr int kMicroRows = TILE_AVX512 ? 14 : 6;
inline constexpr int kMicroVectors = 2;

// Columns of one packed panel of B for compute type T.
template <typename T, int NV = kMicroVectors>
inline constexpr int kPanel = NV*(kVectorBytes / int(sizeof(T)));

// Where the operand A of one micro tile lies: row i, segment s, position k at a[i * row_stride + offsets[s] + k].
// A plain GEMM has one segment of length K; a convolution one per row of the filter window.
template <typename T>
struct MicroA {
  const T* a;
  int64_t row_stride;
  const int64_t* offsets;
  int64_t segments;
  int64_t length;
};

// c[MR][NV * W] (+)= A[MR][K] * B[K][NV * W] with K = segments * length; row k of B at b + k * b_stride. Elements of B
// may be stored narrower than T. Cost: MR * NV multiply-adds and NV + MR loads a step; B streams once.
template <typename T, typename TB, int MR, int NV>
__attribute__((noinline)) void micro(MicroA<T> op, const TB* TILE_RESTRICT b, int64_t b_stride, T* TILE_RESTRICT c,
                                     bool accumulate) {
  constexpr int W = kVectorBytes / int(sizeof(T));
  constexpr int Bases = (MR + 2) / 3;  // one pointer serves three rows: x86 scales an index by 1, 2, 4, 8
  using V = vec<T, W>;
  V acc[MR][NV];
  if (accumulate) {
    static_for<MR>([&](auto i) { static_for<NV>([&](auto j) { acc[i][j] = load<W>(c + (i * NV + j) * W); }); });
  } else {
    static_for<MR>([&](auto i) { static_for<NV>([&](auto j) { acc[i][j] = zero<T, W>(); }); });
  }
  const int64_t stride = op.row_stride;
  for (int64_t s = 0; s < op.segments; ++s) {
    const T* p[Bases];
    static_for<Bases>([&](auto i) { p[i] = op.a + op.offsets[s] + 3 * i * stride; });
    for (int64_t k = 0; k < op.length; ++k) {
      V bv[NV];
      static_for<NV>([&](auto j) { bv[j] = convert<T>(load<W>(b + j * W)); });
      static_for<MR>([&](auto i) {
        const V av = splat<W>(p[i / 3][(i % 3) * stride]);
        static_for<NV>([&](auto j) { acc[i][j] = fma(av, bv[j], acc[i][j]); });
      });
      static_for<Bases>([&](auto i) {
        ++p[i];
        asm("" : "+r"(p[i]));  // keeps the compiler from one pointer per row, which would spill
      });
      b += b_stride;
    }
  }
  static_for<MR>([&](auto i) { static_for<NV>([&](auto j) { store(c + (i * NV + j) * W, acc[i][j]); }); });
}

// One micro tile of MR rows, or of MR - 1 where it is not tall.
template <typename T, typename TB, int MR, int NV>
TILE_INLINE void micro_tile(bool tall, const MicroA<T>& op, const TB* b, int64_t b_stride, T* c) {
  if (tall) {
    micro<T, TB, MR, NV>(op, b, b_stride, c, false);
  } else if constexpr (MR > 1) {
    micro<T, TB, MR - 1, NV>(op, b, b_stride, c, false);
  }
}

}  // namespace heddle::tile
