// Copies blocks of a matrix from memory to scratch memory and transposes them.
#pragma once

#include "tile/kernel/cpu/transpose.h"
#include "tile/op/lanes.h"

namespace heddle::tile {

namespace detail {

// Transposes a block of W x W elements: dst[i * width + j] = src[i + j * stride].
template <int W, typename T, typename S>
TILE_INLINE void transpose_square(T* dst, int64_t width, const S* src, int64_t stride) {
  vec<T, W> r[W];
  static_for<W>([&](auto l) __attribute__((always_inline)) { r[l] = convert<T>(load<W>(src + l * stride)); });
  transpose_rows(r);
  static_for<W>([&](auto l) __attribute__((always_inline)) { store(dst + l * width, r[l]); });
}

}  // namespace detail

// Transposes a block: dst[i * width + j] = src[i + j * stride] for i < rows, j < columns. `width` is a multiple of 16.
// Writes whole vectors, so dst must have room for 16 more rows and columns at its edges.
template <typename T, typename S>
__attribute__((noinline)) void transpose_block(T* TILE_RESTRICT dst, int64_t width, const S* TILE_RESTRICT src,
                                               int64_t stride, int64_t rows, int64_t columns) {
  constexpr int W = sizeof(T) >= 4 ? kVectorBytes / int(sizeof(T)) : kLanes;
  S edge[W * W] = {};
  for (int64_t j = 0; j < columns; j += W) {
    for (int64_t i = 0; i < rows; i += W) {
      const S* from = src + i + j * stride;
      int64_t step = stride;
      if (i + W > rows || j + W > columns) {  // at an edge, reads only elements of the block
        const int64_t n = smaller(rows - i, W), m = smaller(columns - j, W);
        for (int64_t k = 0; k < m; ++k) __builtin_memcpy(edge + k * W, from + k * stride, size_t(n) * sizeof(S));
        from = edge;
        step = W;
      }
      detail::transpose_square<W>(dst + i * width + j, width, from, step);
    }
  }
}

// Prefetches a block of the source; does nothing if columns <= 0.
template <typename S>
TILE_INLINE void prefetch_block(const S* src, int64_t stride, int64_t rows, int64_t columns) {
  constexpr int64_t line = 64 / sizeof(S);
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; i += line) __builtin_prefetch(src + i + j * stride, 0, 2);
  }
}

}  // namespace heddle::tile
