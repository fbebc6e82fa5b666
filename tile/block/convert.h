// Converts a tile to another layout. If each thread has the same elements in both layouts, only registers are renamed.
// Otherwise the elements are exchanged through shared memory.
#pragma once

#include "tile/block/tile.h"

namespace heddle::tile::block {

namespace detail {

// The positions of elements in shared memory. Elements are contiguous along dimension `Last`. Each line along `Last` is
// padded by 16 bytes, so that the same position in adjacent lines is in different banks.
template <typename L, int Last, int Bytes>
struct Packed {
  static constexpr int kLine = L::size(Last);
  static constexpr int kPad = L::elements() == kLine || Bytes > 16 ? 0 : 16 / Bytes;
  static constexpr int kElements = L::elements() / kLine * (kLine + kPad);
  // The stride of dimension `dim`, in elements.
  TILE_HD static constexpr int pitch(int dim) {
    if (dim == Last) return 1;
    int p = kLine + kPad;
    for (int d = L::kRank - 1; d > dim; --d) p *= d == Last ? 1 : L::size(d);
    return p;
  }
  TILE_INLINE static int of_thread(const Place& here) {
    int at = 0;
#pragma unroll
    for (int d = 0; d < L::kRank; ++d) at += here.at[d] * pitch(d);
    return at;
  }
  template <typename M>
  TILE_HD static constexpr int of_register(int r) {
    int at = 0;
    for (int d = 0; d < L::kRank; ++d) at += M::of_register(r, d) * pitch(d);
    return at;
  }
};

// Returns the dimension along which the registers of a thread hold the longest run of neighbouring elements. If several
// dimensions have runs of this length, returns the last of these dimensions.
template <typename L>
TILE_HD constexpr int longest_run() {
  int best = L::kRank - 1;
  for (int d = L::kRank - 2; d >= 0; --d) {
    if (L::run(d) > L::run(best)) best = d;
  }
  return best;
}
// The number of neighbouring elements that one access can move. This number is a power of two, and each group of
// elements that is moved together starts at a multiple of it.
template <typename L, int Last, int Bytes>
TILE_HD constexpr int shared_vector() {
  int v = 1;
  if (Bytes > 8 || (Bytes & (Bytes - 1)) != 0) return 1;
  while (2 * v * Bytes <= 16 && L::run(Last) % (2 * v) == 0 && L::size(Last) % (2 * v) == 0) v *= 2;
  // If the whole run is used, digits above the run have strides that are multiples of v.
  return v;
}

template <int V, typename P, typename T, typename L>
TILE_INLINE void to_shared(T* shared, const Tile<T, L>& x) {
  const Place here = L::here();
  const int at = P::of_thread(here);
  bool mine = true;
  if constexpr (L::kReplicated) mine = L::owner();
  if (mine) {
#pragma unroll
    for (int r = 0; r < L::kRegisters; r += V) {
      if (!L::inside(here, r)) continue;
      struct alignas(V == 1 ? alignof(T) : V * sizeof(T)) Group {
        T e[V];
      } group;
#pragma unroll
      for (int i = 0; i < V; ++i) group.e[i] = x.v[r + i];
      *reinterpret_cast<Group*>(shared + at + P::template of_register<L>(r)) = group;
    }
  }
}
template <int V, typename P, typename T, typename L>
TILE_INLINE void from_shared(const T* shared, Tile<T, L>& x) {
  const Place here = L::here();
  const int at = P::of_thread(here);
#pragma unroll
  for (int r = 0; r < L::kRegisters; r += V) {
    struct alignas(V == 1 ? alignof(T) : V * sizeof(T)) Group {
      T e[V];
    } group{};
    if (L::inside(here, r)) {
      group = *reinterpret_cast<const Group*>(shared + at + P::template of_register<L>(r));
    }
#pragma unroll
    for (int i = 0; i < V; ++i) x.v[r + i] = group.e[i];
  }
}

}  // namespace detail

// Reinterprets the registers of a tile as a tile with layout To. Each thread has the same elements in both layouts.
// Dimensions may be permuted, expanded or split.
template <typename To, typename T, typename L>
TILE_INLINE Tile<T, To> rename(const Tile<T, L>& x) {
  static_assert(To::kRegisters == L::kRegisters && To::kThreads == L::kThreads);
  Tile<T, To> y;
  each_register<L::kRegisters>([&](int r) { y.v[r] = x.v[r]; });
  return y;
}

// The bytes of shared memory that convert() needs.
template <typename To, typename T, typename L>
constexpr int convert_bytes() {
  if constexpr (same_threads<L, To>()) {
    return 0;
  } else {
    return detail::Packed<L, detail::longest_run<To>(), int(sizeof(T))>::kElements * int(sizeof(T));
  }
}

template <typename To, typename T, typename L, typename S>
TILE_INLINE Tile<T, To> convert(S shared, const Tile<T, L>& x) {
  if constexpr (is_same<L, To>) {
    return x;
  } else if constexpr (same_threads<L, To>()) {
    Tile<T, To> y;
    each_register<To::kRegisters>([&](int r) { y.v[r] = x.v[L::template register_at<To>(r)]; });
    return y;
  } else {
    constexpr int kBytes = int(sizeof(T)), kLast = detail::longest_run<To>();
    using P = detail::Packed<L, kLast, kBytes>;
    T* memory = shared.template begin<T>();
    detail::to_shared<detail::shared_vector<L, kLast, kBytes>(), P>(memory, x);
    sync();
    Tile<T, To> y;
    detail::from_shared<detail::shared_vector<To, kLast, kBytes>(), P>(memory, y);
    return y;
  }
}

}  // namespace heddle::tile::block
