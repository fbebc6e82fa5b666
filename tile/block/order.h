// Sorting and histograms of a tile, in shared memory.
#pragma once

#include "tile/block/shape.h"

namespace heddle::tile::block {

namespace detail {

// True if a sorts after b. NaN sorts last in ascending and in descending order.
template <bool Descending, typename T>
TILE_INLINE bool behind(T a, T b) {
  const auto x = widen(a), y = widen(b);
  if constexpr (is_any_float<T>) {
    if (x != x) return y == y;
    if (y != y) return false;
  }
  return Descending ? x < y : y < x;
}

}  // namespace detail

// Sorts along Axis with a bitonic network. The first step of each merge compares mirrored positions. All comparisons
// therefore order their pairs in the same direction, and the length need not be padded to a power of two.
template <int Axis, bool Descending = false, typename T, typename L, typename S>
TILE_INLINE Tile<T, L> sort(S shared, const Tile<T, L>& x) {
  constexpr int kLength = L::size(Axis), kRows = L::elements() / kLength;
  int inner = 1;  // the stride along Axis, in elements
#pragma unroll
  for (int d = Axis + 1; d < L::kRank; ++d) inner *= L::size(d);
  int whole = 1;
  while (whole < kLength) whole *= 2;
  T* memory = shared.template begin<T>();
  detail::lay_down(memory, x);
  const auto step = [&](int run, bool mirrored) {
    sync();
    const int pairs = whole / 2;
#pragma unroll 1
    for (int i = threadIdx.x; i < pairs * kRows; i += L::kThreads) {
      const int row = i / pairs, pair = i % pairs, half = run / 2;
      const int group = pair / half * run, low = group + pair % half;
      const int high = mirrored ? group + run - 1 - pair % half : low + half;
      if (high >= kLength) continue;
      T* const first = memory + row / inner * inner * kLength + row % inner;
      const T a = first[low * inner], b = first[high * inner];
      if (detail::behind<Descending>(a, b)) {
        first[low * inner] = b;
        first[high * inner] = a;
      }
    }
  };
#pragma unroll 1
  for (int merged = 2; merged <= whole; merged *= 2) {
    step(merged, true);
#pragma unroll 1
    for (int run = merged / 2; run >= 2; run /= 2) step(run, false);
  }
  sync();
  return detail::pick_up<L>(memory, [](int, const Place& p) { return detail::row_major<typename L::shape>(p); });
}

// Returns a histogram: element i of the result, a tile of layout To, is the number of elements of x that are equal to
// i. Ignores elements of x that equal no such i, and elements for which the mask (a tile or a scalar) is false.
template <typename To, typename T, typename L, typename M, typename S>
TILE_INLINE Tile<int32_t, To> histogram(S shared, const Tile<T, L>& x, const M& mask) {
  constexpr int kBins = To::elements();
  int32_t* bins = shared.template begin<int32_t>();
  for (int i = threadIdx.x; i < kBins; i += L::kThreads) bins[i] = 0;
  sync();
  bool mine = true;
  if constexpr (L::kReplicated) mine = L::owner();
  detail::each_element<L>([&](int r, const Place&) {
    const T at = x.v[r];
    if (mine && bool(detail::element(mask, r)) && at >= T(0) && uint64_t(at) < uint64_t(kBins)) {
      atomicAdd(bins + static_cast<int>(at), 1);
    }
  });
  sync();
  return detail::pick_up<To>(static_cast<const int32_t*>(bins), [](int, const Place& p) { return p.at[0]; });
}

}  // namespace heddle::tile::block
