// A tuple of values, and a compile-time list of numbers.
#pragma once

#include "tile/core/config.h"
#include "tile/core/static_for.h"

namespace heddle::tile {

// A list of dimensions: dims<0, 2>.
template <int... I>
struct dims {
  static constexpr int kSize = sizeof...(I);
  // Returns entry `i`; -1 beyond the end.
  TILE_HD static constexpr int at(int i) {
    const int values[] = {I..., -1};
    return i >= 0 && i < kSize ? values[i] : -1;
  }
};

namespace detail {

// One entry of a tuple. Entries of empty types are not stored but created on access, because nvcc's back end crashes on
// [[no_unique_address]] in constants.
template <int I, typename T, bool Empty = __is_empty(T)>
struct leaf {
  T value = {};
  constexpr leaf() = default;
  TILE_HD constexpr leaf(const T& v) : value(v) {}
};
template <int I, typename T>
struct leaf<I, T, true> {
  constexpr leaf() = default;
  TILE_HD constexpr leaf(const T&) {}
};

template <typename Is, typename... T>
struct leaves;
template <int... I, typename... T>
struct leaves<indices<I...>, T...> : leaf<I, T>... {};

template <int I, typename T, bool Empty>
TILE_HD T leaf_type(const leaf<I, T, Empty>*);

}  // namespace detail

// An aggregate of any values. It is an empty type if all values are of empty types (such as index constants), so that
// passing it costs nothing.
template <typename... T>
struct tuple : detail::leaves<detail::make_indices<sizeof...(T)>, T...> {
  static constexpr int kSize = sizeof...(T);
};

template <typename... T>
TILE_HD constexpr tuple<T...> make_tuple(T... values) {
  return {{values...}};
}
template <>
TILE_HD constexpr tuple<> make_tuple<>() {
  return {};
}

template <int I, typename T>
TILE_HD constexpr const T& get(const detail::leaf<I, T, false>& leaf) {
  return leaf.value;
}
template <int I, typename T>
TILE_HD constexpr T get(const detail::leaf<I, T, true>&) {
  return {};
}

// The type of entry I.
template <int I, typename Tuple>
using element_t = decltype(detail::leaf_type<I>(static_cast<const Tuple*>(nullptr)));

namespace detail {

template <typename A, typename B, int... I, int... J>
TILE_HD constexpr auto concat(const A& a, const B& b, indices<I...>, indices<J...>) {
  return make_tuple(get<I>(a)..., get<J>(b)...);
}

}  // namespace detail

// Returns the entries of a, followed by those of b.
template <typename... A, typename... B>
TILE_HD constexpr tuple<A..., B...> concat(const tuple<A...>& a, const tuple<B...>& b) {
  return detail::concat(a, b, detail::make_indices<sizeof...(A)>{}, detail::make_indices<sizeof...(B)>{});
}

}  // namespace heddle::tile
