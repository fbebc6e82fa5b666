// Operations that change the shape of a tile. Permuting, inserting or repeating dimensions only renames registers.
// Other operations move elements through shared memory.
#pragma once

#include "tile/block/convert.h"

namespace heddle::tile::block {

// Permutes dimensions: dimension i of the result is dimension Order[i] of x.
template <int... Order, typename T, typename L>
TILE_INLINE auto permute(const Tile<T, L>& x) {
  return rename<permute_t<L, Order...>>(x);
}
// Inserts a dimension of length 1 before dimension Axis.
template <int Axis, typename T, typename L>
TILE_INLINE auto expand(const Tile<T, L>& x) {
  return rename<expand_t<L, Axis>>(x);
}

// Repeats x along dimension Axis, in which x must have length 1. To is the layout of the result. Each thread must hold
// the same elements in the layout of x as in squeeze_t<To, Axis>, which is To with length 1 along Axis.
template <typename To, int Axis, typename T, typename L>
TILE_INLINE Tile<T, To> broadcast(const Tile<T, L>& x) {
  static_assert(same_threads<L, squeeze_t<To, Axis>>(), "convert to squeeze_t<To, Axis> first");
  Tile<T, To> y;
  each_register<To::kRegisters>(
      [&](int r) { y.v[r] = x.v[L::template register_at<squeeze_t<To, Axis>>(To::template reduced<Axis>(r))]; });
  return y;
}

// Interleaves two tiles along a new last dimension of length 2.
template <typename T, typename L>
TILE_INLINE Tile<T, join_t<L>> join(const Tile<T, L>& a, const Tile<T, L>& b) {
  Tile<T, join_t<L>> y;
  each_register<L::kRegisters>([&](int r) {
    y.v[2 * r] = a.v[r];
    y.v[2 * r + 1] = b.v[r];
  });
  return y;
}
// Returns half 0 or 1 of a tile made by join().
template <typename L, int Half, typename T>
TILE_INLINE Tile<T, L> half_of(const Tile<T, join_t<L>>& x) {
  Tile<T, L> y;
  each_register<L::kRegisters>([&](int r) { y.v[r] = x.v[2 * r + Half]; });
  return y;
}

// ---- Operations through shared memory

template <typename T, typename L>
constexpr int whole_bytes() {
  return L::elements() * int(sizeof(T));
}

namespace detail {

// The row-major index of the element at p.
template <typename Shape>
TILE_INLINE int row_major(const Place& p) {
  int at = 0;
#pragma unroll
  for (int d = 0; d < Shape::kSize; ++d) at = at * Shape::at(d) + p.at[d];
  return at;
}

template <typename L, typename F>
TILE_INLINE void each_element(F f) {
  const Place here = L::here();
#pragma unroll
  for (int r = 0; r < L::kRegisters; ++r) {
    if (!L::inside(here, r)) continue;
    Place p = here;
#pragma unroll
    for (int d = 0; d < L::kRank; ++d) p.at[d] += L::of_register(r, d);
    f(r, p);
  }
}

template <typename T, typename L>
TILE_INLINE void lay_down(T* shared, const Tile<T, L>& x) {
  bool mine = true;
  if constexpr (L::kReplicated) mine = L::owner();
  each_element<L>([&](int r, const Place& p) {
    if (mine) shared[row_major<typename L::shape>(p)] = x.v[r];
  });
}
// Loads a tile from shared memory. The register r that holds the tile's element at position p is loaded from the
// address shared + f(r, p).
template <typename To, typename T, typename F>
TILE_INLINE Tile<T, To> pick_up(const T* shared, F f) {
  Tile<T, To> y{};
  each_element<To>([&](int r, const Place& p) { y.v[r] = shared[f(r, p)]; });
  return y;
}

}  // namespace detail

// Gives x another shape. The elements keep their row-major order.
template <typename To, typename T, typename L, typename S>
TILE_INLINE Tile<T, To> reshape(S shared, const Tile<T, L>& x) {
  static_assert(To::elements() == L::elements());
  T* memory = shared.template begin<T>();
  detail::lay_down(memory, x);
  sync();
  return detail::pick_up<To>(memory, [](int, const Place& p) { return detail::row_major<typename To::shape>(p); });
}

// Concatenates a and b along dimension 0.
template <typename To, typename T, typename A, typename B, typename S>
TILE_INLINE Tile<T, To> cat(S shared, const Tile<T, A>& a, const Tile<T, B>& b) {
  static_assert(To::elements() == A::elements() + B::elements());
  T* memory = shared.template begin<T>();
  detail::lay_down(memory, a);
  detail::lay_down(memory + A::elements(), b);
  sync();
  return detail::pick_up<To>(memory, [](int, const Place& p) { return detail::row_major<typename To::shape>(p); });
}

// Returns the slice of x along Axis that begins at `start`. To is the layout of the slice, and so gives its length.
template <typename To, int Axis, typename T, typename L, typename S>
TILE_INLINE Tile<T, To> extract(S shared, const Tile<T, L>& x, int start) {
  T* memory = shared.template begin<T>();
  detail::lay_down(memory, x);
  sync();
  return detail::pick_up<To>(memory, [&](int, Place p) {
    p.at[Axis] += start;
    return detail::row_major<typename L::shape>(p);
  });
}

// Reverses x along Axis.
template <int Axis, typename T, typename L, typename S>
TILE_INLINE Tile<T, L> flip(S shared, const Tile<T, L>& x) {
  T* memory = shared.template begin<T>();
  detail::lay_down(memory, x);
  sync();
  return detail::pick_up<L>(memory, [&](int, Place p) {
    p.at[Axis] = L::size(Axis) - 1 - p.at[Axis];
    return detail::row_major<typename L::shape>(p);
  });
}

// Gathers the elements at the indices `index` along Axis. An index out of range is clamped to the nearest valid index.
template <int Axis, typename T, typename L, typename I, typename To, typename S>
TILE_INLINE Tile<T, To> gather(S shared, const Tile<T, L>& x, const Tile<I, To>& index) {
  T* memory = shared.template begin<T>();
  detail::lay_down(memory, x);
  sync();
  return detail::pick_up<To>(memory, [&](int r, Place p) {
    const I i = index.v[r];
    p.at[Axis] = i < I(0) ? 0 : i >= I(L::size(Axis)) ? L::size(Axis) - 1 : static_cast<int>(i);
    return detail::row_major<typename L::shape>(p);
  });
}

}  // namespace heddle::tile::block
