// Copies of a matrix with a change of strides and element type.
#pragma once

#include "tile/arch/cpu/vec.h"
#include "tile/core/static_for.h"

namespace heddle::tile {

namespace detail {

// Interleaves the low (High = 0) or high halves of a and b in runs of Run lanes.
template <int Run, int High, typename T, int W, int... I>
TILE_INLINE vec<T, W> interleave(vec<T, W> a, vec<T, W> b, indices<I...>) {
  // Lane i of the result: within each pair of runs, the first comes from a, the second from b.
  return {
      __builtin_shufflevector(a.v, b.v, (((I / Run) & 1) * W + (I / (2 * Run)) * 2 * Run + High * Run + I % Run)...)};
}

}  // namespace detail

// Transposes W x W elements held as W rows, in log2(W) exchanges.
template <typename T, int W>
TILE_INLINE void transpose_rows(vec<T, W> (&r)[W]) {
  static_for<(W >= 16  ? 4
              : W >= 8 ? 3
              : W >= 4 ? 2
              : W >= 2 ? 1
                       : 0)>([&](auto step) {
    constexpr int run = 1 << decltype(step)::value;
    static_for<W>([&](auto i) {
      constexpr int at = decltype(i)::value;
      if constexpr ((at & run) == 0) {
        const vec<T, W> a = r[at], b = r[at + run];
        r[at] = detail::interleave<run, 0>(a, b, detail::make_indices<W>{});
        r[at + run] = detail::interleave<run, 1>(a, b, detail::make_indices<W>{});
      }
    });
  });
}

template <typename T>
TILE_INLINE void store_zero(T* p, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] = T(0);
}

// dst[i][j] = src[i * row + j * col] for i < rows, j < cols; dst has unit stride along j. Integers convert to the wider
// type, 16-bit floats to float.
template <typename T, typename S>
void copy_matrix(T* TILE_RESTRICT dst, int64_t dst_row, const S* TILE_RESTRICT src, int64_t row, int64_t col,
                 int64_t rows, int64_t cols) {
  constexpr int W = kLanes;
  int64_t i = 0;
  if (col == 1) {
    for (; i < rows; ++i) {
      int64_t j = 0;
      for (; j + W <= cols; j += W) store(dst + i * dst_row + j, convert<T>(load<W>(src + i * row + j)));
      if (j < cols) store_n(dst + i * dst_row + j, convert<T>(load_n<W>(src + i * row + j, cols - j)), cols - j);
    }
    return;
  }
  if (row == 1) {
    for (; i + W <= rows; i += W) {
      int64_t j = 0;
      for (; j + W <= cols; j += W) {
        vec<T, W> r[W];
        static_for<W>([&](auto l) { r[l] = convert<T>(load<W>(src + i + (j + l) * col)); });
        if constexpr (sizeof(T) * W <= kVectorBytes) {
          transpose_rows(r);
          static_for<W>([&](auto l) { store(dst + (i + l) * dst_row + j, r[l]); });
        } else {
          static_for<W>([&](auto l) { store_strided(dst + i * dst_row + j + l, dst_row, r[l]); });
        }
      }
      for (; j < cols; ++j) store_strided(dst + i * dst_row + j, dst_row, convert<T>(load<W>(src + i + j * col)));
    }
  }
  for (; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      dst[i * dst_row + j] = convert<T>(load<1>(src + i * row + j * col)).v;
    }
  }
}

}  // namespace heddle::tile
