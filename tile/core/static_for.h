// Loops that the compiler front-end unrolls. Indices are types, so arrays of vectors that are indexed by them stay in
// registers.
#pragma once

#include "tile/core/config.h"

namespace heddle::tile {

template <int I>
struct index_constant {
  static constexpr int value = I;
  TILE_HD constexpr operator int() const { return I; }
};

namespace detail {

template <int... I>
struct indices {};
#if defined(__clang__)
template <typename, int... I>
using indices_of = indices<I...>;
template <int N>
using make_indices = __make_integer_seq<indices_of, int, N>;
#elif defined(__CUDACC_RTC__)
// NVRTC has neither of the two builtins, so the sequence is built by joining two halves.
template <typename A, typename B>
struct join_indices;
template <int... A, int... B>
struct join_indices<indices<A...>, indices<B...> > {
  using type = indices<A..., (int(sizeof...(A)) + B)...>;
};
template <int N>
struct indices_below {
  using type =
      typename join_indices<typename indices_below<N / 2>::type, typename indices_below<N - N / 2>::type>::type;
};
template <>
struct indices_below<0> {
  using type = indices<>;
};
template <>
struct indices_below<1> {
  using type = indices<0>;
};
template <int N>
using make_indices = typename indices_below<N>::type;
#else
template <int N>
using make_indices = indices<__integer_pack(N)...>;
#endif

template <typename F, int... I>
TILE_HD constexpr inline __attribute__((always_inline)) void for_each_index([[maybe_unused]] F& f, indices<I...>) {
  (f(index_constant<I>{}), ...);
}

}  // namespace detail

// Calls f(index_constant<0>), ..., f(index_constant<N - 1>).
template <int N, typename F>
TILE_HD constexpr inline __attribute__((always_inline)) void static_for(F f) {
  detail::for_each_index(f, detail::make_indices<N>{});
}

}  // namespace heddle::tile
