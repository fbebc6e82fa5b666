// Loads whose lanes lie anywhere, at positions that are computed or come from memory.
#pragma once

#include "tile/arch/cpu/vec.h"

namespace heddle::tile {

// Positions as wrap_index() makes them: negative ones count from the end, what is still outside is clamped.
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

// p[index[i]] for the first n lanes, where n is at least 1. What the others hold is of no use to anybody.
template <typename T, int W, typename N>
TILE_INLINE vec<compute_t<T>, W> gather_lanes(const T* p, vec<int32_t, W> index, N n) {
  return detail::load_each<W, T>([&](int i) { return p + index[i < n ? i : 0]; });
}
// The same with positions from memory: each costs a scalar load. To take them out of a vector costs more, and so do the
// gathers of the processors that we know.
template <int W, typename T, typename N>
TILE_INLINE vec<compute_t<T>, W> gather_at(const T* p, const int32_t* index, N n) {
  return detail::load_each<W, T>([&](int i) { return p + index[i < n ? i : 0]; });
}

namespace detail {

// Lane i of a moved to where index[i] says, for whole registers of 32-bit elements.
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

}  // namespace detail

// The same where W neighbouring positions ascend by less than `Vectors` (1 or 2) times W in all, as in a resized row:
// loads of whole vectors from the first position on, and permutations, which look at the low bits of a lane number
// only. `limit` elements from p on may be read.
template <int W, int Vectors, typename T, typename N>
TILE_INLINE vec<compute_t<T>, W> gather_near(const T* p, const int32_t* index, int64_t limit, N n) {
  if constexpr (W == detail::kPermuted && is_same<T, float>) {
    // Close to the end, the last vectors that may be read hold all of these elements.
    const int64_t last = limit - Vectors * W;
    if (last >= 0) {
      const int64_t first = index[0] < last ? index[0] : last;
      // Vectors find their own minimum: a number in a general register takes longer to spread than one in memory.
      const vec<int32_t, W> begin = min(splat<W>(index[0]), splat<W>(int32_t(last)));
      const vec<int32_t, W> offset = detail::positions<W>(index, n) - begin;
      const vec<float, W> low = detail::permute(load<W>(p + first), offset);
      if constexpr (Vectors == 1) return low;
      return select(offset < splat<W>(W), low, detail::permute(load<W>(p + first + W), offset));
    }
  }
  return gather_at<W>(p, index, n);
}

}  // namespace heddle::tile
