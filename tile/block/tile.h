// A tile: an array whose elements are in registers of the threads of a block. Every thread of the block takes part in
// every operation on tiles, so operations must be in uniform control flow.
#pragma once

#include "tile/arch/sm80/shared.h"
#include "tile/block/layout.h"
#include "tile/block/number.h"

namespace heddle::tile::block {

template <typename T, typename L>
struct Tile {
  using element = T;
  using layout = L;
  T v[L::kRegisters];

  TILE_INLINE T& operator[](int r) { return v[r]; }
  TILE_INLINE const T& operator[](int r) const { return v[r]; }
};

template <typename X>
inline constexpr bool is_tile = false;
template <typename T, typename L>
inline constexpr bool is_tile<Tile<T, L>> = true;

template <int N, typename F>
TILE_INLINE void each_register(F f) {
#pragma unroll
  for (int r = 0; r < N; ++r) f(r);
}

namespace detail {

// Returns register r of the tile x. If x is a scalar, returns x for every r.
template <typename X>
TILE_INLINE decltype(auto) element(const X& x, [[maybe_unused]] int r) {
  if constexpr (is_tile<X>) {
    return (x.v[r]);
  } else {
    return (x);
  }
}
template <typename... X>
struct first_layout;
template <typename T, typename L, typename... X>
struct first_layout<Tile<T, L>, X...> {
  using type = L;
};
template <typename S, typename... X>
struct first_layout<S, X...> : first_layout<X...> {};
template <typename L, typename X>
inline constexpr bool fits_layout = true;
template <typename L, typename T, typename M>
inline constexpr bool fits_layout<L, Tile<T, M>> = is_same<L, M>;

}  // namespace detail

// Applies f to each element. All tiles must have one layout. Scalars are combined with every element.
template <typename F, typename... X>
TILE_INLINE auto map(F f, const X&... x) {
  using L = typename detail::first_layout<X...>::type;
  static_assert((detail::fits_layout<L, X> && ...), "tiles of one layout: convert() moves a tile to another");
  Tile<decltype(f(detail::element(x, 0)...)), L> result;
  each_register<L::kRegisters>([&](int r) { result.v[r] = f(detail::element(x, r)...); });
  return result;
}

// Like map(), but evaluates f only once for each aligned group of R neighbouring registers. The caller guarantees that
// the results of a group are equal.
template <int R, typename F, typename... X>
TILE_INLINE auto map_runs(F f, const X&... x) {
  using L = typename detail::first_layout<X...>::type;
  static_assert((detail::fits_layout<L, X> && ...) && L::kRegisters % R == 0);
  Tile<decltype(f(detail::element(x, 0)...)), L> result;
  each_register<L::kRegisters>(
      [&](int r) { result.v[r] = r % R == 0 ? f(detail::element(x, r)...) : result.v[r / R * R]; });
  return result;
}

// Returns mask ? x : other for each element. If `whole`, the mask is true everywhere and is not read.
template <typename M, typename T, typename L, typename O>
TILE_INLINE Tile<T, L> select_unless(bool whole, const Tile<M, L>& mask, const Tile<T, L>& x, const O& other) {
  Tile<T, L> result = x;
  if (!whole) result = map([](bool m, T a, T b) { return m ? a : b; }, mask, x, other);
  return result;
}

namespace detail {

template <int P, typename F, typename All, int... I>
TILE_INLINE auto call_packed(F f, const All& all, int r, tile::detail::indices<I...>) {
  return f(element(get<I / P>(all), r + I % P)...);
}

}  // namespace detail

// Applies f to P neighbouring elements at a time. The arguments are P elements of the first tile, then P of the next. f
// returns a tuple. Its entries P * Result to P * Result + P - 1 become elements of the returned tile.
template <int P, int Result, typename F, typename... X>
TILE_INLINE auto map_packed(F f, const X&... x) {
  using L = typename detail::first_layout<X...>::type;
  static_assert((detail::fits_layout<L, X> && ...) && L::kRegisters % P == 0);
  const auto all = make_tuple(x...);
  constexpr auto kAll = tile::detail::make_indices<P* int(sizeof...(X))>{};
  using R = decltype(detail::call_packed<P>(f, all, 0, kAll));
  Tile<element_t<P * Result, R>, L> result;
#pragma unroll
  for (int r = 0; r < L::kRegisters; r += P) {
    const R group = detail::call_packed<P>(f, all, r, kAll);
    static_for<P>([&](auto i) { result.v[r + i] = get<P * Result + decltype(i)::value>(group); });
  }
  return result;
}

// A tile with the same value everywhere.
template <typename L, typename T>
TILE_INLINE Tile<T, L> fill(T value) {
  Tile<T, L> result;
  each_register<L::kRegisters>([&](int r) { result.v[r] = value; });
  return result;
}

// Computes f(place) for each element. place.at[d] is the element's coordinate along dimension d.
template <typename L, typename F>
TILE_INLINE auto from_place(F f) {
  const Place here = L::here();
  Tile<decltype(f(here)), L> result;
  each_register<L::kRegisters>([&](int r) {
    Place p = here;
#pragma unroll
    for (int d = 0; d < L::kRank; ++d) p.at[d] += L::of_register(r, d);
    result.v[r] = f(p);
  });
  return result;
}

// A tile with the values start, start + 1, ... along dimension `Dim`.
template <typename L, int Dim = 0, typename T = int32_t>
TILE_INLINE Tile<T, L> iota(T start = T(0)) {
  const T here = T(start + T(L::here().at[Dim]));
  Tile<T, L> result;
  each_register<L::kRegisters>([&](int r) { result.v[r] = T(here + T(L::of_register(r, Dim))); });
  return result;
}

// Given a tile of tuples, returns the tile of their entries number I.
template <int I, typename... T, typename L>
TILE_INLINE auto entry(const Tile<tuple<T...>, L>& x) {
  return map([](const tuple<T...>& all) { return get<I>(all); }, x);
}

// ---- The block's shared memory

// A region of dynamic shared memory through which threads exchange data in an operation. It starts `Offset` bytes after
// the first multiple of Alignment. Shared memory begins at a multiple of 128 bytes; for a larger Alignment, the launch
// requests that many extra bytes.
//
// `Guard`: begin() first waits at a barrier, since other threads may still read old data in the region. `Guard` can be
// false if these reads are already behind a barrier, for example because the previous operation used a different
// region.
template <int Offset = 0, bool Guard = true, int Alignment = 16>
struct scratch {
  static constexpr int offset = Offset;
  TILE_INLINE uint8_t* begin() const {
    if constexpr (Guard) sync();
    return memory();
  }
  template <typename T>
  TILE_INLINE T* begin() const {
    return reinterpret_cast<T*>(begin());
  }
  TILE_INLINE static uint8_t* memory() { return aligned() + Offset; }
  // The elements of operand number `index`. Operand 0 begins at byte At; the distance between operands is Stride bytes.
  template <typename O, int At, int Stride = 0>
  TILE_INLINE static typename O::element* slot(int index = 0) {
    return reinterpret_cast<typename O::element*>(aligned() + At + index * Stride);
  }

 private:
  TILE_INLINE static uint8_t* aligned() {
    extern __shared__ __align__(128) uint8_t raw_shared[];
    if constexpr (Alignment <= 128) {
      return raw_shared;
    } else {
      return raw_shared + (Alignment - cuda::shared_address(raw_shared) % Alignment) % Alignment;
    }
  }
};

}  // namespace heddle::tile::block
