// Building blocks of generated loops: loops over the elements of a row in vectors, loads and stores of whole or partial
// vectors, and index arithmetic with the semantics of the IR. The parameter `n` is the number of lanes. For a whole
// vector, its type is index_constant<W>, so that loads and stores need no mask; for the tail of a row, it is int64_t.
#pragma once

#include "tile/arch/cpu/vec.h"
#include "tile/core/static_for.h"
#include "tile/op/index.h"

namespace heddle::tile {

template <int W, int B>
TILE_INLINE mask<B, W> splat_mask(mask<B, 1> m) {
  return {splat<W>(m.v.v)};
}

// Returns lane i of a vector or a mask.
template <typename T, int W>
TILE_INLINE vec<T, 1> lane(vec<T, W> a, int64_t i) {
  return {a[static_cast<int>(i)]};
}
template <int B, int W>
TILE_INLINE mask<B, 1> lane(mask<B, W> m, int64_t i) {
  return {{m.v[static_cast<int>(i)]}};
}

// ---- Loads and stores

template <int W, typename T>
TILE_INLINE auto fetch(const T* p, index_constant<W>) {
  return load<W>(p);
}
template <int W, typename T>
TILE_INLINE auto fetch(const T* p, int64_t n) {
  return load_n<W>(p, n);
}
template <int W, typename T>
TILE_INLINE auto fetch_strided(const T* p, int64_t stride, index_constant<W>) {
  return load_strided<W>(p, stride);
}
template <int W, typename T>
TILE_INLINE auto fetch_strided(const T* p, int64_t stride, int64_t n) {
  return load_strided_n<W>(p, stride, n);
}
template <typename T, typename V>
TILE_INLINE void put(T* p, V v, index_constant<V::width>) {
  store(p, v);
}
template <typename T, typename V>
TILE_INLINE void put(T* p, V v, int64_t n) {
  store_n(p, v, n);
}
template <typename T, typename V>
TILE_INLINE void put_strided(T* p, int64_t stride, V v, index_constant<V::width>) {
  store_strided(p, stride, v);
}
template <typename T, typename V>
TILE_INLINE void put_strided(T* p, int64_t stride, V v, int64_t n) {
  store_strided_n(p, stride, v, n);
}

// put_stream() uses non-temporal stores for whole vectors at aligned addresses, and ordinary stores otherwise.
// stream_aligned() requires an aligned address. The kernel must call finish_stream() at its end.
template <typename T, int W>
TILE_INLINE void stream_aligned(T* p, vec<T, W> v) {
  if constexpr (is_wide<T, W>) {
    stream_aligned(p, v.lo);
    stream_aligned(p + W / 2, v.hi);
  } else {
#if defined(__clang__)
    __builtin_nontemporal_store(v.v, reinterpret_cast<decltype(v.v)*>(p));
#else
    constexpr int bytes = W * int(sizeof(T));
    if constexpr (bytes == 64) {
#if TILE_AVX512
      typedef long long quads __attribute__((vector_size(64)));
      __builtin_ia32_movntdq512(reinterpret_cast<quads*>(p), (quads)v.v);
#endif
    } else if constexpr (bytes == 32) {
#if TILE_AVX2
      typedef long long quads __attribute__((vector_size(32)));
      __builtin_ia32_movntdq256(reinterpret_cast<quads*>(p), (quads)v.v);
#endif
    } else {
#if defined(__SSE2__)
      typedef long long quads __attribute__((vector_size(16)));
      __builtin_ia32_movntdq(reinterpret_cast<quads*>(p), (quads)v.v);
#else
      store(p, v);
#endif
    }
#endif
  }
}
template <typename T, typename V>
TILE_INLINE void put_stream(T* p, V v, index_constant<V::width>) {
  constexpr int bytes = V::width * int(sizeof(T));
  if constexpr (bytes % 16 == 0) {
    if (reinterpret_cast<uintptr_t>(p) % (bytes < kVectorBytes ? bytes : kVectorBytes) == 0) {
      if constexpr (is_same<T, typename V::element> || !is_same<T, detail::bits_t<T>>) {
        return stream_aligned(reinterpret_cast<detail::bits_t<T>*>(p), detail::narrow<T>(v));
      }
    }
  }
  store(p, v);
}
template <typename T, typename V>
TILE_INLINE void put_stream(T* p, V v, int64_t n) {
  store_n(p, v, n);
}
TILE_INLINE void finish_stream() {
#if defined(__SSE2__)
  __builtin_ia32_sfence();
#endif
}

// Returns a vector with lanes f(0), ..., f(n - 1), for functions without a vector form. The other lanes are 0.
template <int W, typename T, typename F>
TILE_INLINE vec<T, W> lanes_of(int64_t n, F f) {
  T buffer[W] = {};
  for (int64_t i = 0; i < n; ++i) buffer[i] = f(i);
  return load<W>(buffer);
}

// ---- Loops over vectors. f.operator()<W>(i, n) processes the n <= W indices from i on; the calls cover [begin, end).

template <int W, typename F>
TILE_INLINE void for_lanes(int64_t begin, int64_t end, F f) {
  int64_t i = begin;
  for (; i + W <= end; i += W) f.template operator()<W>(i, index_constant<W>{});
  if constexpr (W > 1) {
    if (i < end) f.template operator()<W>(i, end - i);
  }
}

// for_lanes over [0, end) with a constant `end`. If there is no tail, the tail's instance of f is not compiled.
template <int W, int64_t end, typename F>
TILE_INLINE void for_all_lanes(F f) {
  constexpr int64_t whole = end / W * W;
  for (int64_t i = 0; i < whole; i += W) f.template operator()<W>(i, index_constant<W>{});
  if constexpr (whole < end) f.template operator()<W>(whole, end - whole);
}

// The number of elements from p to the next address that is aligned for a non-temporal store of W elements.
template <int W, typename T>
TILE_INLINE int64_t to_boundary(const T* p) {
  constexpr uintptr_t bytes = W * sizeof(T) < size_t(kVectorBytes) ? W * sizeof(T) : size_t(kVectorBytes);
  return int64_t((bytes - reinterpret_cast<uintptr_t>(p) % bytes) % bytes / sizeof(T));
}
// for_lanes with a shorter first vector of `head` < W indices.
template <int W, typename F>
TILE_INLINE void for_lanes_from(int64_t head, int64_t begin, int64_t end, F f) {
  if (head > 0) {
    head = smaller(head, end - begin);
    f.template operator()<W>(begin, head);
    begin += head;
  }
  for_lanes<W>(begin, end, f);
}

// for_lanes unrolled by U. The third argument of f is the index of one of U independent accumulators, as a compile-time
// constant.
template <int W, int U, typename F>
TILE_INLINE void for_lanes_unrolled(int64_t begin, int64_t end, F f) {
  int64_t i = begin;
  for (; i + U * W <= end; i += U * W) {
    static_for<U>([&](auto u)
                      __attribute__((always_inline)) { f.template operator()<W>(i + u * W, index_constant<W>{}, u); });
  }
  if constexpr (U > 1) {
    for (; i + W <= end; i += W) f.template operator()<W>(i, index_constant<W>{}, index_constant<0>{});
  }
  if constexpr (W > 1) {
    if (i < end) f.template operator()<W>(i, end - i, index_constant<0>{});
  }
}

// for_lanes_unrolled in blocks, for accumulators that sum many terms. After each block, calls settle(n), where n is an
// upper bound for the number of terms that an accumulator received in the block.
template <int W, int U, typename S, typename F>
TILE_INLINE void for_lanes_settled(int64_t begin, int64_t end, S settle, F f) {
  for (int64_t next = 0; begin < end; begin = next) {
    next = smaller(end, begin + kLongSum * U * W);
    for_lanes_unrolled<W, U>(begin, next, f);
    settle((next - begin) / (U * W) + U);
  }
}

}  // namespace heddle::tile
