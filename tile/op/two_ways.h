// The work on a vector in two forms: one where all of its lanes are there and within the bounds of their masks, which
// fold away, and one where some are not.
#pragma once

#include "tile/arch/vec.h"

namespace heddle::tile {

struct all_lanes {};
struct some_lanes {};
template <typename F>
TILE_INLINE auto in_two_ways(bool all, const F& work) {
  return all ? work(all_lanes{}) : work(some_lanes{});
}

template <int W>
TILE_INLINE constexpr bool is_whole(index_constant<W>) {
  return true;
}
template <int W>
TILE_INLINE constexpr bool is_whole(int64_t) {
  return false;
}

// How many of n lanes lie within a bound.
template <int W, typename N>
TILE_INLINE index_constant<W> within(all_lanes, N, int64_t) {
  return {};
}
template <int W, typename N>
TILE_INLINE int64_t within(some_lanes, N n, int64_t bound) {
  return int64_t(n) < bound ? int64_t(n) : bound;
}

template <int W, typename T>
TILE_INLINE vec<compute_t<T>, W> load_first(const T* p, index_constant<W>) {
  return load<W>(p);
}
template <typename T, typename V>
TILE_INLINE void store_first(T* p, V v, index_constant<V::width>) {
  store(p, v);
}

}  // namespace heddle::tile
