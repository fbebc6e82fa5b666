// The register-blocked inner kernel of GEMM and convolution.
#pragma once

#include "tile/arch/cpu/vec.h"
#include "tile/core/static_for.h"
#include "tile/kernel/cpu/words.h"

namespace heddle::tile {

// Register budget. With 32 registers, 14 x 2 accumulators leave room for two vectors of B and one of A. With 16
// registers, 6 x 2 accumulators leave the same room.
inline constexpr int kMicroRows = TILE_AVX512 ? 14 : 6;
inline constexpr int kMicroVectors = 2;

// The number of columns of one packed panel of B for compute type T.
template <typename T, int NV = kMicroVectors>
inline constexpr int kPanel = NV*(kVectorBytes / int(sizeof(T)));

// The operand A of one micro tile in memory. Element (row i, segment s, position k) is at a[i * row_stride + offsets[s]
// + k]. A plain GEMM has one segment of length K. A convolution has one segment per row of the filter window. Before
// segment s, skips[s] steps of k are skipped in B.
template <typename T>
struct MicroA {
  const T* a;
  int64_t row_stride;
  const int64_t* offsets;
  int64_t segments;
  int64_t length;
  const int64_t* skips = nullptr;
};

// The cache lines that will be needed when a micro tile is finished. They are prefetched while the tile is computed:
// `each` lines every kAheadSteps steps of k.
struct Ahead {
  const void* const* lines = nullptr;
  int64_t count = 0, each = 0;
};
inline constexpr int kAheadSteps = 16;

namespace detail {

// The number of rows that are addressed from one pointer. x86 can add an index times 1, 2, 4 or 8 to a pointer. If
// three registers hold 1, 3 and 5 times the stride as indices, a pointer to a row also reaches the next six rows. So 14
// rows occupy only five of the 15 registers: two pointers and three indices. A pointer for every three rows was slower.
// GCC ran out of registers and kept pointers and a vector of B on the stack; a loop of 13 rows became 5% slower.
inline constexpr int kRowsPerBase = 7;

template <int Row>
TILE_INLINE int64_t row_offset(int64_t stride, int64_t stride3, int64_t stride5) {
  static_assert(Row < kRowsPerBase);
  return Row % 3 == 0 ? Row / 3 * stride3 : Row == 5 ? stride5 : Row * stride;
}

// A vector of B as the micro-kernel multiplies it.
template <typename T, int W, typename TB>
TILE_INLINE vec<T, W> load_b(const TB* b) {
  if constexpr (is_word<TB>) {
    return load<W>(&b->bits);
  } else {
    return convert<T>(load<W>(b));
  }
}

template <typename TB, typename T, int W>
TILE_INLINE vec<T, W> multiply_step(vec<T, W> a, vec<T, W> b, vec<T, W> c) {
  if constexpr (is_word<TB>) {
    return multiply_words<TB>(a, b, c);
  } else {
    return fma(a, b, c);
  }
}

}  // namespace detail

// The number of consecutive steps of k that have separate accumulators, so that the additions of a tile with few rows
// need not wait for each other. A multiply-add has a latency of four cycles, and two start per cycle.
constexpr int micro_chains(int accumulators) {
  return accumulators <= 2 ? 4 : accumulators <= 4 ? 2 : 1;
}

// Computes c[MR][NV * W] = A[MR][K] * B[K][NV * W] with K = segments * length. Row k of B is at b + k * b_stride.
// Elements of B may be stored in a narrower type than T. If TB is a word of several elements, T is the type of its
// sums, and elements of A are words too. Cost per step of k: MR * NV multiply-adds and NV + MR loads. B is read once.
// Arguments of several words are references. A copy would read freshly stored words as one vector, which cannot be
// forwarded from the store queue: each tile would wait until all results of the previous one are in the cache.
template <typename T, typename TB, int MR, int NV>
__attribute__((noinline)) void micro(const MicroA<T>& op, const TB* TILE_RESTRICT b, int64_t b_stride,
                                     T* TILE_RESTRICT c, const Ahead& ahead) {
  constexpr int W = kVectorBytes / int(sizeof(T));
  constexpr int Rows = detail::kRowsPerBase, Bases = (MR + Rows - 1) / Rows;
  using V = vec<T, W>;
  constexpr int Chains = micro_chains(MR * NV);
  V acc[Chains][MR][NV];
  static_for<Chains * MR * NV>([&](auto i) { acc[i / (MR * NV)][i / NV % MR][i % NV] = zero<T, W>(); });
  int64_t stride = op.row_stride * int64_t(sizeof(T)), stride3 = 3 * stride, stride5 = 5 * stride;
  asm("" : "+r"(stride), "+r"(stride3), "+r"(stride5));  // keeps the compiler from computing the offset of each row
  const void* const* lines = ahead.lines;
  int64_t lines_left = ahead.count;
  for (int64_t s = 0; s < op.segments; ++s) {
    if (op.skips != nullptr) b += op.skips[s] * b_stride;
    const char* p[Bases];
    static_for<Bases>([&](auto i) { p[i] = reinterpret_cast<const char*>(op.a + op.offsets[s]) + i * Rows * stride; });
    for (int64_t left = op.length; left > 0;) {
      const int64_t steps = lines_left > 0 && left > kAheadSteps ? kAheadSteps : left;
      left -= steps;
      const int64_t asked = ahead.each < lines_left ? ahead.each : lines_left;
      for (int64_t i = 0; i < asked; ++i) __builtin_prefetch(lines[i]);
      lines += asked;
      lines_left -= asked;
      const auto step = [&](auto chain) __attribute__((always_inline)) {
        V bv[NV];
        static_for<NV>([&](auto j) { bv[j] = detail::load_b<T, W>(b + j * W); });
        b += b_stride;
        static_for<MR>([&](auto i) {
          const int64_t at = detail::row_offset<i % Rows>(stride, stride3, stride5);
          const V av = splat<W>(*reinterpret_cast<const T*>(p[i / Rows] + at));
          static_for<NV>([&](auto j) { acc[chain][i][j] = detail::multiply_step<TB>(av, bv[j], acc[chain][i][j]); });
        });
        static_for<Bases>([&](auto i) {
          p[i] += sizeof(T);
          asm("" : "+r"(p[i]));  // keeps the compiler from using one pointer per row, which would spill
        });
      };
      int64_t k = steps;
      for (; k >= Chains; k -= Chains) static_for<Chains>(step);
      if constexpr (Chains > 1) {
        for (; k > 0; --k) step(index_constant<0>{});
      }
    }
  }
  static_for<MR>([&](auto i) {
    static_for<NV>([&](auto j) {
      V sum = acc[0][i][j];
      static_for<Chains - 1>([&](auto chain) { sum = sum + acc[chain + 1][i][j]; });
      store(c + (i * NV + j) * W, sum);
    });
  });
}

// The micro-kernels of a problem. `tall` and `low` are for tiles of `rows` and `rows - 1` rows; the narrow_ versions
// are one vector wide. All four are function pointers, so the calling code is the same for every tile height.
template <typename T, typename TB>
struct MicroKernels {
  using Function = void (*)(const MicroA<T>& op, const TB* b, int64_t b_stride, T* c, const Ahead& ahead);
  int64_t rows;
  Function tall, low, narrow_tall, narrow_low;

  template <bool Narrow>
  TILE_INLINE void run(bool is_tall, const MicroA<T>& op, const TB* b, int64_t b_stride, T* c,
                       const Ahead& ahead = {}) const {
    (is_tall ? (Narrow ? narrow_tall : tall) : (Narrow ? narrow_low : low))(op, b, b_stride, c, ahead);
  }
};

template <typename T, typename TB, int MR, int NV>
constexpr MicroKernels<T, TB> micro_kernels() {
  MicroKernels<T, TB> kernels{MR, micro<T, TB, MR, NV>, nullptr, nullptr, nullptr};
  if constexpr (MR > 1) kernels.low = micro<T, TB, MR - 1, NV>;
  return kernels;
}

// For problems that have tiles of both widths. Combines the kernels of `wide` with the single-vector kernels of
// `narrow`. The tile heights of `wide` and `narrow` must be equal.
template <typename T, typename TB>
constexpr MicroKernels<T, TB> with_narrow(const MicroKernels<T, TB>& wide, const MicroKernels<T, TB>& narrow) {
  return {wide.rows, wide.tall, wide.low, narrow.tall, narrow.low};
}

// Returns the argument whose kernels compute tiles of `rows` rows. Exactly one argument must do so.
template <typename Kernels, typename... Others>
constexpr const Kernels& of_height(int64_t rows, const Kernels& first, const Others&... others) {
  if constexpr (sizeof...(others) > 0) {
    if (first.rows != rows) return of_height(rows, others...);
  }
  return first;
}

}  // namespace heddle::tile
