// Loops over vectors whose masks have bounds: lane i of a mask is set if i is less than the mask's bound. The body is
// compiled in three forms: for vectors within all bounds, where the masks are constant true; for vectors beyond all
// bounds, where the masked code is removed; and for vectors in between.
#pragma once

#include "tile/op/lanes.h"

namespace heddle::tile {

struct all_lanes {};
struct some_lanes {};
struct no_lanes {};

// Bounds that several masks have in common. Lanes below `all` are set in every mask. Lanes from `any` on are set in no
// mask.
struct lane_bounds {
  int64_t all = 0, any = 0;
};
template <typename... Bound>
TILE_INLINE lane_bounds bounds_of(int64_t first, Bound... others) {
  lane_bounds r{first, first};
  ((r.all = smaller(r.all, int64_t(others)), r.any = larger(r.any, int64_t(others))), ...);
  return r;
}

// Returns how many of n lanes are within a bound.
template <int W, typename N>
TILE_INLINE index_constant<W> within(all_lanes, N, int64_t) {
  return {};
}
template <int W, typename N>
TILE_INLINE index_constant<0> within(no_lanes, N, int64_t) {
  return {};
}
template <int W, typename N>
TILE_INLINE int64_t within(some_lanes, N n, int64_t bound) {
  return smaller(int64_t(n), bound);
}

// Calls f.operator()<W>(i, n, form) for each vector of the lanes [0, end). The vector has n lanes, from lane i on; n is
// less than W only in the last vector. `form` is all_lanes, some_lanes or no_lanes.
template <int W, int64_t end, typename F>
TILE_INLINE void for_bounded_lanes(lane_bounds bounds, const F& f) {
  constexpr int64_t whole = end / W * W;
  int64_t i = 0;
  for (; i + W <= smaller(bounds.all, whole); i += W) f.template operator()<W>(i, index_constant<W>{}, all_lanes{});
  for (; i < whole && i < bounds.any; i += W) f.template operator()<W>(i, index_constant<W>{}, some_lanes{});
  for (; i < whole; i += W) f.template operator()<W>(i, index_constant<W>{}, no_lanes{});
  if constexpr (whole < end) f.template operator()<W>(whole, end - whole, some_lanes{});
}

}  // namespace heddle::tile
