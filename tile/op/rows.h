// Transposes between short rows in memory and columns in scratch, for the inputs and outputs of kernels whose vector
// lanes are rows.
#pragma once

#include "tile/op/lanes.h"

namespace heddle::tile {

namespace detail {

// Divides a and b into runs of Run lanes, and the runs into pairs. For each pair of a and the corresponding pair of b,
// the result contains run High (0 or 1) of the pair of a, followed by run High of the pair of b.
template <int Run, int High, typename T, int W, int... I>
TILE_INLINE vec<T, W> exchange(vec<T, W> a, vec<T, W> b, indices<I...>) {
  return {
      __builtin_shufflevector(a.v, b.v, (((I / Run) & 1) * W + (I / (2 * Run)) * 2 * Run + High * Run + I % Run)...)};
}
// Lanes First, First + 2, ... of a, followed by the same lanes of b.
template <int First, typename T, int W, int... I>
TILE_INLINE vec<T, W> every_second(vec<T, W> a, vec<T, W> b, indices<I...>) {
  return {__builtin_shufflevector(a.v, b.v, (2 * I + First)...)};
}
// Alternating lanes of a and b, from their low halves (High = 0) or high halves (High = 1).
template <int High, typename T, int W, int... I>
TILE_INLINE vec<T, W> in_turns(vec<T, W> a, vec<T, W> b, indices<I...>) {
  return {__builtin_shufflevector(a.v, b.v, ((I & 1) * W + High * (W / 2) + I / 2)...)};
}

constexpr int log2_of(int n) {
  return n <= 1 ? 0 : 1 + log2_of(n / 2);
}

// Transposes each P x P block of P vectors of W lanes: swaps lane k P + q of r[p] with lane k P + p of r[q].
template <int P, typename T, int W>
TILE_INLINE void exchange_blocks(vec<T, W> (&r)[P]) {
  static_for<log2_of(P)>([&](auto step) __attribute__((always_inline)) {
    constexpr int run = 1 << decltype(step)::value;
    static_for<P>([&](auto i) __attribute__((always_inline)) {
      constexpr int at = decltype(i)::value;
      if constexpr ((at & run) == 0) {
        const vec<T, W> a = r[at], b = r[at + run];
        r[at] = exchange<run, 0>(a, b, make_indices<W>{});
        r[at + run] = exchange<run, 1>(a, b, make_indices<W>{});
      }
    });
  });
}

// rows_to_columns() converts P consecutive vectors that contain rows of P elements to P columns. columns_to_rows() is
// the inverse.
template <int P, typename T, int W>
TILE_INLINE void rows_to_columns(vec<T, W> (&r)[P]) {
  static_for<log2_of(P)>([&](auto) __attribute__((always_inline)) {
    vec<T, W> next[P];
    static_for<P / 2>([&](auto i) __attribute__((always_inline)) {
      next[i] = every_second<0>(r[2 * i], r[2 * i + 1], make_indices<W>{});
      next[i + P / 2] = every_second<1>(r[2 * i], r[2 * i + 1], make_indices<W>{});
    });
    static_for<P>([&](auto i) __attribute__((always_inline)) { r[i] = next[i]; });
  });
}
template <int P, typename T, int W>
TILE_INLINE void columns_to_rows(vec<T, W> (&r)[P]) {
  static_for<log2_of(P)>([&](auto) __attribute__((always_inline)) {
    vec<T, W> next[P];
    static_for<P / 2>([&](auto i) __attribute__((always_inline)) {
      next[2 * i] = in_turns<0>(r[i], r[i + P / 2], make_indices<W>{});
      next[2 * i + 1] = in_turns<1>(r[i], r[i + P / 2], make_indices<W>{});
    });
    static_for<P>([&](auto i) __attribute__((always_inline)) { r[i] = next[i]; });
  });
}

template <typename T, typename S, int W>
TILE_INLINE vec<T, W> from_bits(vec<bits_t<S>, W> v) {
  return convert<T>(widen<S>(v));
}

// A vector of the first P elements of W / P rows, one row after another. Rows are `step` elements apart in memory.
template <int W, int P, typename T>
TILE_INLINE vec<T, W> side_by_side(const T* p, int64_t step) {
  if constexpr (W == P) {
    return load_raw<W, T>(p);
  } else {
    return join(side_by_side<W / 2, P>(p, step), side_by_side<W / 2, P>(p + W / 2 / P * step, step));
  }
}
// Lanes K P to K P + P - 1 of v.
template <int K, int P, typename T, int W>
TILE_INLINE vec<T, P> group_of(vec<T, W> v) {
  if constexpr (W == P) {
    return v;
  } else if constexpr (K * P < W / 2) {
    return group_of<K, P>(low_half(v));
  } else {
    return group_of<K - W / 2 / P, P>(high_half(v));
  }
}

template <typename T>
constexpr int row_lanes = sizeof(T) >= 4 ? kVectorBytes / int(sizeof(T)) : kLanes;

// The number of columns that one part of a row contains: the smallest power of two that is at least `length`, but at
// most `lanes`.
constexpr int row_part(int length, int lanes) {
  int p = 1;
  while (p < length && p < lanes) p *= 2;
  return p;
}
constexpr bool is_power(int n) {
  return (n & (n - 1)) == 0;
}

// Loads columns [First, L) of W rows that are `stride` apart, and stores them to dst. A row is processed in parts, and
// each part is read completely, even beyond the end of the row.
template <int L, int First, typename T, typename S>
TILE_INLINE void load_columns(T* dst, int64_t width, const S* src, int64_t stride) {
  using M = bits_t<S>;
  constexpr int W = row_lanes<T>, P = row_part(L - First, W), kept = L - First < P ? L - First : P;
  const M* from = reinterpret_cast<const M*>(src) + First;
  vec<T, W> r[P];
  static_for<P>([&](auto q) __attribute__((always_inline)) {
    r[q] = from_bits<T, S>(side_by_side<W, P>(from + q * stride, P * stride));
  });
  exchange_blocks<P>(r);
  static_for<kept>([&](auto p) __attribute__((always_inline)) { store(dst + (First + p) * width, r[p]); });
  if constexpr (First + P < L) load_columns<L, First + P>(dst, width, src, stride);
}

// The inverse of load_columns(): stores W rows of L elements to dst, in parts. The last part of the rows is stored
// first. Elements that are written after the end of a row are then overwritten by the next row. dst must have room for
// one more part.
template <int L, int First, typename T>
TILE_INLINE void store_columns(T* dst, const T* src, int64_t width) {
  constexpr int W = row_lanes<T>, P = row_part(L - First, W), kept = L - First < P ? L - First : P;
  if constexpr (First + P < L) store_columns<L, First + P>(dst, src, width);
  vec<T, W> r[P];
  static_for<P>([&](auto p) __attribute__((always_inline)) {
    if constexpr (p < kept) {
      r[p] = load<W>(src + (First + p) * width);
    } else {
      r[p] = zero<T, W>();
    }
  });
  exchange_blocks<P>(r);
  // Stores in the order of the rows: row k P + q is group k of r[q].
  static_for<W / P>([&](auto k) __attribute__((always_inline)) {
    static_for<P>([&](auto q) __attribute__((always_inline)) {
      store_raw(dst + (k * P + q) * L + First, group_of<k, P>(r[q]));
    });
  });
}

}  // namespace detail

// dst[c][r] = src[r * stride + c] for r < count, c < L. The columns of dst are `width` elements apart. They are written
// in whole vectors, so each has room for `count` rounded up to a multiple of 16. `readable`: the number of rows from
// src on that may be read.
template <int L, typename T, typename S>
__attribute__((noinline)) void load_rows(T* TILE_RESTRICT dst, int64_t width, const S* TILE_RESTRICT src,
                                         int64_t stride, int64_t count, int64_t readable) {
  using M = detail::bits_t<S>;
  constexpr int W = detail::row_lanes<T>;
  constexpr int room = (L + W) * W;  // parts of rows are read completely, even beyond the end of a row
  M edge[room];
  const int64_t ahead = count * stride;
  for (int64_t i = 0; i < count; i += W, src += W * stride, dst += W) {
    // Prefetches the next block while this one is computed.
    if constexpr (L * W * sizeof(S) >= 64) {
      for (int64_t k = 0; k < L * W; k += 64 / int64_t(sizeof(S))) __builtin_prefetch(src + ahead + k, 0, 2);
    }
    const S* from = src;
    int64_t step = stride;
    if (i + 2 * W > readable) {  // nothing after the last row is read
      const int64_t n = smaller(count - i, W);
      if (stride == L) {
        __builtin_memcpy(edge, src, size_t(n * L) * sizeof(S));
      } else {
        for (int64_t k = 0; k < n; ++k) __builtin_memcpy(edge + k * L, src + k * stride, L * sizeof(S));
      }
      from = reinterpret_cast<const S*>(edge);
      step = L;
    }
    if constexpr (detail::is_power(L) && L <= W) {
      if (step == L) {
        vec<T, W> r[L];
        static_for<L>([&](auto q) __attribute__((always_inline)) {
          r[q] = detail::from_bits<T, S>(detail::load_raw<W, M>(from + q * W));
        });
        detail::rows_to_columns<L>(r);
        static_for<L>([&](auto q) __attribute__((always_inline)) { store(dst + q * width, r[q]); });
        continue;
      }
    }
    detail::load_columns<L, 0>(dst, width, from, step);
  }
}

// Like load_rows(), for a row length that is not known at compile time. Copies element by element.
template <typename T, typename S>
__attribute__((noinline)) void load_rows_of(int64_t length, T* TILE_RESTRICT dst, int64_t width,
                                            const S* TILE_RESTRICT src, int64_t stride, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < length; ++c) dst[c * width + i] = load<1>(src + i * stride + c).v;
  }
}

// dst[r * stride + c] = src[c][r] for r < count, c < L. The columns of src are read up to `count` rounded up to a
// multiple of 16. Stream: uses non-temporal stores if rows are contiguous.
template <int L, bool Stream, typename T, typename S>
__attribute__((noinline)) void store_rows(S* TILE_RESTRICT dst, int64_t stride, const T* TILE_RESTRICT src,
                                          int64_t width, int64_t count) {
  constexpr int W = detail::row_lanes<T>;
  if constexpr (detail::is_power(L) && L <= W) {
    if (stride == L) {
      for (; count >= W; count -= W, dst += W * L, src += W) {
        vec<T, W> r[L];
        static_for<L>([&](auto q) __attribute__((always_inline)) { r[q] = load<W>(src + q * width); });
        detail::columns_to_rows<L>(r);
        static_for<L>([&](auto q) __attribute__((always_inline)) {
          if constexpr (Stream) {
            put_stream(dst + q * W, r[q], index_constant<W>{});
          } else {
            store(dst + q * W, r[q]);
          }
        });
      }
    }
  }
  // Rows whose writes overlap are first stored to a buffer. The buffer has many rows, so that a row is read back only
  // after its stores have completed.
  constexpr int64_t kRows = 64;
  alignas(64) T rows[(kRows + W) * L + W];
  for (int64_t i = 0; i < count; i += kRows, dst += kRows * stride, src += kRows) {
    const int64_t n = smaller(count - i, kRows);
    for (int64_t k = 0; k < n; k += W) detail::store_columns<L, 0>(rows + k * L, src + k, width);
    if (stride == L) {
      for_lanes<W>(
          0, n * L, [&]<int V>(int64_t k, auto m) __attribute__((always_inline)) {
            if constexpr (Stream) {
              put_stream(dst + k, fetch<V>(rows + k, m), m);
            } else {
              put(dst + k, fetch<V>(rows + k, m), m);
            }
          });
    } else {
      for (int64_t k = 0; k < n; ++k) {
        for_lanes<W>(
            0, L, [&]<int V>(int64_t c, auto m) __attribute__((always_inline)) {
              put(dst + k * stride + c, fetch<V>(rows + k * L + c, m), m);
            });
      }
    }
  }
}

// Like store_rows(), for a row length that is not known at compile time. Copies element by element.
template <typename T, typename S>
__attribute__((noinline)) void store_rows_of(int64_t length, S* TILE_RESTRICT dst, int64_t stride,
                                             const T* TILE_RESTRICT src, int64_t width, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < length; ++c) store(dst + i * stride + c, vec<T, 1>{src[c * width + i]});
  }
}

}  // namespace heddle::tile
