// Gathers: loads whose lanes have arbitrary indices, which are computed or read from memory.
#pragma once

#include "tile/arch/cpu/vec.h"

namespace heddle::tile {

// Converts indices as wrap_index() does. Negative indices count from the end; indices that are still out of range are
// clamped.
template <typename T, int W>
TILE_INLINE vec<int32_t, W> wrap_lanes(vec<T, W> index, int64_t n) {
  if constexpr (sizeof(T) < 4) {
    return wrap_lanes(convert<int32_t>(index), n);
  } else if constexpr (is_signed<T>) {
    const vec<T, W> none = zero<T, W>(), from_start = select(index < none, index + T(n), index);
    return convert<int32_t>(min(splat<W>(T(n - 1)), max(none, from_start)));
  } else {
    return convert<int32_t>(min(splat<W>(T(n - 1)), index));
  }
}

// Loads p[index[i]] for the first n lanes; n must be at least 1. The other lanes are unspecified.
template <typename T, int W, typename N>
TILE_INLINE vec<compute_t<T>, W> gather_lanes(const T* p, vec<int32_t, W> index, N n) {
  return detail::load_each<W, T>([&](int i) { return p + index[i < n ? i : 0]; });
}
// Loads as gather_lanes() does, but reads the indices from memory. Each index costs a scalar load. Extracting the
// indices from a vector would cost more, and so would the gather instructions of all processors that we know.
template <int W, typename T, typename N>
TILE_INLINE vec<compute_t<T>, W> gather_at(const T* p, const int32_t* index, N n) {
  return detail::load_each<W, T>([&](int i) { return p + index[i < n ? i : 0]; });
}

namespace detail {

// Lane i of the result is lane index[i] of a. The vectors fill whole registers of 32-bit elements.
#if TILE_AVX512
inline constexpr int kPermuted = 16;
TILE_INLINE vec<float, 16> permute(vec<float, 16> a, vec<int32_t, 16> index) {
#if defined(__clang__)
  return {__builtin_ia32_permvarsf512(a.v, index.v)};
#else
  return {__builtin_ia32_permvarsf512_mask(a.v, index.v, a.v, uint16_t(-1))};
#endif
}
#elif TILE_AVX2
inline constexpr int kPermuted = 8;
TILE_INLINE vec<float, 8> permute(vec<float, 8> a, vec<int32_t, 8> index) {
  return {__builtin_ia32_permvarsf256(a.v, index.v)};
}
#else
inline constexpr int kPermuted = 0;
template <typename V, typename I>
V permute(V, I);
#endif

template <int W>
TILE_INLINE vec<int32_t, W> positions(const int32_t* p, index_constant<W>) {
  return load<W>(p);
}
template <int W>
TILE_INLINE vec<int32_t, W> positions(const int32_t* p, int64_t n) {
  return load_n<W>(p, n);
}

// Broadcasts lane 0 to all lanes. A shuffle does this without a load, so the load ports stay free for elements.
template <int W, int... I>
TILE_INLINE vec<int32_t, W> splat_first(vec<int32_t, W> a, indices<I...>) {
  return {__builtin_shufflevector(a.v, a.v, (0 * I)...)};
}

}  // namespace detail

// Loads p[index[i]] as gather_at() does, for W indices that ascend by less than `Vectors` * W in total, as in a row of
// a resized image. `Vectors` is 1 or 2. Loads whole vectors that begin at the first index, and permutes them.
// Permutations use only the low bits of a lane number. The first `limit` elements of p may be read.
template <int W, int Vectors, typename T, typename N>
TILE_INLINE vec<compute_t<T>, W> gather_near(const T* p, const int32_t* index, int64_t limit, N n) {
  if constexpr (W == detail::kPermuted && is_same<T, float>) {
    // Near the end of the readable memory, the last `Vectors` vectors contain all elements that are to be gathered.
    const int64_t last = limit - Vectors * W;
    if (last >= 0) {
      const vec<int32_t, W> at = detail::positions<W>(index, n);
      int64_t first = index[0];
      vec<int32_t, W> begin = detail::splat_first(at, detail::make_indices<W>{});
      // This is a branch since only the last vectors of a row take it. A minimum would cost time for all vectors.
      if (first > last) [[unlikely]] {
        first = last;
        begin = splat<W>(int32_t(last));
      }
      const vec<int32_t, W> offset = at - begin;
      const vec<float, W> low = detail::permute(load<W>(p + first), offset);
      if constexpr (Vectors == 1) return low;
      return select(offset < splat<W>(W), low, detail::permute(load<W>(p + first + W), offset));
    }
  }
  return gather_at<W>(p, index, n);
}

}  // namespace heddle::tile
