// Loops unrolled by the front-end: indices are types, so arrays of vectors indexed by them stay in registers.
#pragma once

namespace heddle::tile {

template <int I>
struct index_constant {
  static constexpr int value = I;
  constexpr operator int() const { return I; }
};

namespace detail {

template <int... I>
struct indices {};
#if defined(__clang__)
template <typename, int... I>
using indices_of = indices<I...>;
template <int N>
using make_indices = __make_integer_seq<indices_of, int, N>;
#else
template <int N>
using make_indices = indices<__integer_pack(N)...>;
#endif

template <typename F, int... I>
inline __attribute__((always_inline)) void for_each_index(F& f, indices<I...>) {
  (f(index_constant<I>{}), ...);
}

}  // namespace detail

// f(index_constant<0>), ..., f(index_constant<N - 1>).
template <int N, typename F>
inline __attribute__((always_inline)) void static_for(F f) {
  detail::for_each_index(f, detail::make_indices<N>{});
}

}  // namespace heddle::tile
