// Copies a matrix with new strides and a new element type.
#pragma once

#include "tile/arch/cpu/vec.h"
#include "tile/core/static_for.h"

namespace heddle::tile {

namespace detail {

// Interleaves runs of Run lanes from a and b. Of each pair of runs of a and b, uses the first run if High is 0, and the
// second run if High is 1.
template <int Run, int High, typename T, int W, int... I>
TILE_INLINE vec<T, W> interleave(vec<T, W> a, vec<T, W> b, indices<I...>) {
  // In each pair of runs of the result, the first run is from a and the second run is from b.
  return {
      __builtin_shufflevector(a.v, b.v, (((I / Run) & 1) * W + (I / (2 * Run)) * 2 * Run + High * Run + I % Run)...)};
}

// Alternates W / 2 lanes of a and b, from lane First on.
template <int First, typename T, int W, int... I>
TILE_INLINE vec<T, W> zip(vec<T, W> a, vec<T, W> b, indices<I...>) {
  return {__builtin_shufflevector(a.v, b.v, (First + I / 2 + I % 2 * W)...)};
}

}  // namespace detail

// Transposes a square matrix of W / Run rows in registers, in log2(W / Run) exchanges. An element of the matrix is a
// run of Run lanes.
template <int Run = 1, typename T, int W>
TILE_INLINE void transpose_rows(vec<T, W> (&r)[W / Run]) {
  constexpr int N = W / Run;
  static_for<(N >= 16  ? 4
              : N >= 8 ? 3
              : N >= 4 ? 2
              : N >= 2 ? 1
                       : 0)>([&](auto step) {
    constexpr int run = 1 << decltype(step)::value;
    static_for<N>([&](auto i) {
      constexpr int at = decltype(i)::value;
      if constexpr ((at & run) == 0) {
        const vec<T, W> a = r[at], b = r[at + run];
        r[at] = detail::interleave<run * Run, 0>(a, b, detail::make_indices<W>{});
        r[at + run] = detail::interleave<run * Run, 1>(a, b, detail::make_indices<W>{});
      }
    });
  });
}

// Interleaves the lanes of N vectors, a power of two: lane i of r[j] becomes element N * i + j of the sequence r[0],
// r[1], ...
template <int N, typename T, int W>
TILE_INLINE void zip_rows(vec<T, W> (&r)[N]) {
  if constexpr (N > 1) {
    constexpr int H = N / 2;
    vec<T, W> even[H], odd[H];
    static_for<H>([&](auto i) { even[i] = r[2 * i], odd[i] = r[2 * i + 1]; });
    zip_rows(even);
    zip_rows(odd);
    static_for<H>([&](auto i) {
      r[2 * i] = detail::zip<0>(even[i], odd[i], detail::make_indices<W>{});
      r[2 * i + 1] = detail::zip<W / 2>(even[i], odd[i], detail::make_indices<W>{});
    });
  }
}

template <typename T>
TILE_INLINE void store_zero(T* p, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] = T{};
}

namespace detail {

// Transposes a block: dst[i][j] = src[i + j * col] for i < rows, j < columns, where rows and columns are at most W.
// Writes `rows` rows of `width` elements; elements after `columns` repeat the last column. src[0] to src[end - 1] may
// be read. For a partial column, reads a whole vector if `end` allows it, since a partial load or store costs as much
// as several whole ones.
template <bool WholeColumns, bool WholeRows, typename T, typename S>
TILE_INLINE void transpose_block(T* TILE_RESTRICT dst, int64_t dst_row, const S* TILE_RESTRICT src, int64_t col,
                                 int64_t rows, int64_t columns, int64_t width, int64_t end) {
  constexpr int W = kLanes;
  vec<T, W> r[W];
  static_for<W>([&](auto l) {
    const int64_t at = (l < columns ? int64_t(l) : columns - 1) * col;
    r[l] = convert<T>(WholeColumns || end - at >= W ? load<W>(src + at) : load_n<W>(src + at, end - at));
  });
  if constexpr (sizeof(T) * W > kVectorBytes) {
    static_for<W>([&](auto l) {
      if (l < width) store_strided_n(dst + l, dst_row, r[l], rows);
    });
  } else {
    transpose_rows(r);
    static_for<W>([&](auto l) {
      if (!WholeColumns && l >= rows) return;
      if constexpr (WholeRows) {
        store(dst + l * dst_row, r[l]);
      } else {
        store_n(dst + l * dst_row, r[l], width);
      }
    });
  }
}

// copy_matrix() for row == 1. It may write up to `width` columns.
template <typename T, typename S>
void copy_transposed(T* TILE_RESTRICT dst, int64_t dst_row, const S* TILE_RESTRICT src, int64_t col, int64_t rows,
                     int64_t cols, int64_t width) {
  constexpr int W = kLanes;
  const int64_t end = (col > 0 ? (cols - 1) * col : 0) + rows;
  for (int64_t i = 0; i < rows; i += W) {
    const int64_t height = rows - i < W ? rows - i : W;
    for (int64_t j = 0; j < cols; j += W) {
      const int64_t columns = cols - j < W ? cols - j : W, room = width - j < W ? width - j : W, at = i + j * col;
      T* const out = dst + i * dst_row + j;
      if (room < W) {
        transpose_block<false, false>(out, dst_row, src + at, col, height, columns, room, end - at);
      } else if (height < W) {
        transpose_block<false, true>(out, dst_row, src + at, col, height, columns, W, end - at);
      } else {
        transpose_block<true, true>(out, dst_row, src + at, col, W, columns, W, end - at);
      }
    }
  }
}

}  // namespace detail

// Copies a matrix: dst[i * dst_row + j] = src[i * row + j * col] for i < rows, j < cols. Converts elements to T:
// integers to a wider type, 16-bit floats to float.
template <typename T, typename S>
void copy_matrix(T* TILE_RESTRICT dst, int64_t dst_row, const S* TILE_RESTRICT src, int64_t row, int64_t col,
                 int64_t rows, int64_t cols) {
  constexpr int W = kLanes;
  // Matrices with fewer rows are copied element by element, because blocks of W rows would be mostly empty.
  constexpr int64_t kFewest = W >= 16 ? 4 : W >= 8 ? 3 : 2;
  if (col == 1) {
    for (int64_t i = 0; i < rows; ++i) {
      int64_t j = 0;
      for (; j + W <= cols; j += W) store(dst + i * dst_row + j, convert<T>(load<W>(src + i * row + j)));
      if (j < cols) store_n(dst + i * dst_row + j, convert<T>(load_n<W>(src + i * row + j, cols - j)), cols - j);
    }
  } else if (row == 1 && rows >= kFewest) {
    detail::copy_transposed(dst, dst_row, src, col, rows, cols, cols);
  } else {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < cols; ++j) dst[i * dst_row + j] = convert<T>(load<1>(src + i * row + j * col)).v;
    }
  }
}

// 16-bit floats that stay in their type are copied as bits.
template <typename T>
requires is_class<T>
void copy_matrix(T* TILE_RESTRICT dst, int64_t dst_row, const T* TILE_RESTRICT src, int64_t row, int64_t col,
                 int64_t rows, int64_t cols) {
  using Bits = detail::bits_t<T>;
  copy_matrix(reinterpret_cast<Bits*>(dst), dst_row, reinterpret_cast<const Bits*>(src), row, col, rows, cols);
}

// Like copy_matrix(), for a destination with rows of `width` elements. `width` is a multiple of the vector length. In
// each row, the elements after the first `cols` are undefined.
template <typename T, typename S>
void copy_padded(T* TILE_RESTRICT dst, int64_t width, const S* TILE_RESTRICT src, int64_t row, int64_t col,
                 int64_t rows, int64_t cols) {
  if (row == 1 && col != 1) return detail::copy_transposed(dst, width, src, col, rows, cols, width);
  copy_matrix(dst, width, src, row, col, rows, cols);
}

}  // namespace heddle::tile
