// A tile: each thread of a block holds some elements of an array in registers. Every thread of the block takes part in
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

// Register r of a tile, or a scalar itself, which is the same everywhere.
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

// Applies f to each element. All tiles have one layout; scalars are combined with every element.
template <typename F, typename... X>
TILE_INLINE auto map(F f, const X&... x) {
  using L = typename detail::first_layout<X...>::type;
  static_assert((detail::fits_layout<L, X> && ...), "tiles of one layout: convert() moves a tile to another");
  Tile<decltype(f(detail::element(x, 0)...)), L> result;
  each_register<L::kRegisters>([&](int r) { result.v[r] = f(detail::element(x, r)...); });
  return result;
}

// The same if each R neighbouring registers, from a multiple of R on, are known to have equal results.
template <int R, typename F, typename... X>
TILE_INLINE auto map_runs(F f, const X&... x) {
  using L = typename detail::first_layout<X...>::type;
  static_assert((detail::fits_layout<L, X> && ...) && L::kRegisters % R == 0);
  Tile<decltype(f(detail::element(x, 0)...)), L> result;
  each_register<L::kRegisters>(
      [&](int r) { result.v[r] = r % R == 0 ? f(detail::element(x, r)...) : result.v[r / R * R]; });
  return result;
}

// mask ? x : other. `whole`: the mask is true everywhere and is not read.
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

// f takes P neighbours of each tile, one tile after the other, and returns a tuple of results. The P results from
// number P * Result on become a tile.
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

// The same value everywhere.
template <typename L, typename T>
TILE_INLINE Tile<T, L> fill(T value) {
  Tile<T, L> result;
  each_register<L::kRegisters>([&](int r) { result.v[r] = value; });
  return result;
}

// Computes f(place) for each element; place.at[d] are its coordinates.
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

// start, start + 1, ... along dimension `Dim`.
template <typename L, int Dim = 0, typename T = int32_t>
TILE_INLINE Tile<T, L> iota(T start = T(0)) {
  const T here = T(start + T(L::here().at[Dim]));
  Tile<T, L> result;
  each_register<L::kRegisters>([&](int r) { result.v[r] = T(here + T(L::of_register(r, Dim))); });
  return result;
}

// Entry I of tiles of tuples.
template <int I, typename... T, typename L>
TILE_INLINE auto entry(const Tile<tuple<T...>, L>& x) {
  return map([](const tuple<T...>& all) { return get<I>(all); }, x);
}

// ---- The block's shared memory

// A part of dynamic shared memory, `Offset` bytes from its first multiple of Alignment, through which threads exchange
// data in an operation. `Guard`: other threads may still read old data there. It is false if a barrier is in between,
// e.g. because the previous operation used another part. Shared memory begins at a multiple of 128 bytes; with a larger
// Alignment a launch requests that many extra bytes.
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
  // Elements of operand number `index`. The first operand begins `At` bytes from the start; they are Stride bytes
  // apart.
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
