// Reductions along an axis, and sorting. The function `combine` of a reduction takes two tuples of values with the same
// number of lanes, and returns the tuple of the combined values.
#pragma once

#include "tile/core/tuple.h"
#include "tile/op/bounded_lanes.h"

namespace heddle::tile {

template <typename V>
inline constexpr int lane_count = 0;
template <typename T, int W>
inline constexpr int lane_count<vec<T, W>> = W;
template <int B, int W>
inline constexpr int lane_count<mask<B, W>> = W;

template <int B, int W>
TILE_INLINE mask<B, W / 2> low_half(mask<B, W> m) {
  return {low_half(m.v)};
}
template <int B, int W>
TILE_INLINE mask<B, W / 2> high_half(mask<B, W> m) {
  return {high_half(m.v)};
}

namespace detail {

template <typename... V, int... I>
TILE_INLINE auto low_halves(const tuple<V...>& t, indices<I...>) {
  return make_tuple(low_half(get<I>(t))...);
}
template <typename... V, int... I>
TILE_INLINE auto high_halves(const tuple<V...>& t, indices<I...>) {
  return make_tuple(high_half(get<I>(t))...);
}
template <int W, typename... V, int... I>
TILE_INLINE tuple<V...> select_each(int64_t n, const tuple<V...>& a, const tuple<V...>& b, indices<I...>) {
  const mask<4, W> m = first_lanes<4, W>(n);
  return make_tuple(select(m, get<I>(a), get<I>(b))...);
}
template <typename Combine, typename... V>
TILE_INLINE auto combine_lanes(const tuple<V...>& t, const Combine& combine) {
  constexpr int W = lane_count<element_t<0, tuple<V...>>>;
  if constexpr (W == 1) {
    return t;
  } else {
    constexpr auto all = make_indices<sizeof...(V)>{};
    return combine_lanes(combine(low_halves(t, all), high_halves(t, all)), combine);
  }
}
template <typename T, int W>
TILE_INLINE bool is_same_bits(vec<T, W> a, vec<T, W> b) {
  return !any(bit_cast<uint_t<sizeof(T)>>(a) != bit_cast<uint_t<sizeof(T)>>(b));
}
template <int B, int W>
TILE_INLINE bool is_same_bits(mask<B, W> a, mask<B, W> b) {
  return is_same_bits(a.v, b.v);
}
template <typename... V, int... I>
TILE_INLINE bool are_same_bits(const tuple<V...>& a, const tuple<V...>& b, indices<I...>) {
  return (is_same_bits(get<I>(a), get<I>(b)) && ...);
}
template <typename... V, int... I>
TILE_INLINE auto lane_of(const tuple<V...>& t, int i, indices<I...>) {
  return make_tuple(lane(get<I>(t), i)...);
}
template <typename T, int W>
TILE_INLINE void set_lane(vec<T, W>& a, int i, vec<T, 1> v) {
  a.set(i, v.v);
}
template <int B, int W>
TILE_INLINE void set_lane(mask<B, W>& a, int i, mask<B, 1> m) {
  a.v.set(i, m.v.v);
}
template <typename... V, typename... S, int... I>
TILE_INLINE void set_lanes(tuple<V...>& t, int i, const tuple<S...>& s, indices<I...>) {
  (set_lane(const_cast<V&>(get<I>(t)), i, get<I>(s)), ...);
}

}  // namespace detail

// Applies `combine`, which takes tuples of scalars, to each lane of a and b.
template <typename Combine, typename... V>
TILE_INLINE tuple<V...> by_lane(const tuple<V...>& a, const tuple<V...>& b, const Combine& combine) {
  constexpr int W = lane_count<element_t<0, tuple<V...>>>;
  constexpr auto all = detail::make_indices<sizeof...(V)>{};
  tuple<V...> r = a;
  for (int i = 0; i < W; ++i) {
    detail::set_lanes(r, i, combine(detail::lane_of(a, i, all), detail::lane_of(b, i, all)), all);
  }
  return r;
}

namespace detail {

// Combines the whole vectors among the first `all` elements, where `all` is at most `most`. U vectors are combined at a
// time, so that the latencies of the combinations overlap; there must be at least U vectors. whole(i) returns the
// vector at element i. Sets `i` to the index of the first element that is not combined. kAll: `all` is equal to `most`.
// Each call of whole() in the code costs compile time, so calls that can never run are not instantiated.
template <int W, int U, int64_t most, bool kAll, typename Whole, typename Combine>
TILE_INLINE auto reduce_whole(int64_t all, int64_t& i, const Whole& whole, const Combine& combine) {
  decltype(whole(0)) part[U];
  static_for<U>([&](auto u) __attribute__((always_inline)) { part[u] = whole(u * W); });
  i = U * W;
  if constexpr (most >= 2 * U * W) {
    for (; i + U * W <= all; i += U * W) {
      static_for<U>([&](auto u) __attribute__((always_inline)) { part[u] = combine(part[u], whole(i + u * W)); });
    }
  }
  static_for<U>([&](auto u) __attribute__((always_inline)) {
    if constexpr (decltype(u)::value > 0) part[0] = combine(part[0], part[u]);
  });
  if constexpr (U > 1 && (!kAll || most % (U * W) >= W)) {
    for (; i + W <= all; i += W) part[0] = combine(part[0], whole(i));
  }
  return part[0];
}
// Combines `r` with a partial last vector, which has the last n = length % W elements.
template <int W, int64_t length, typename Result, typename Element, typename Combine>
TILE_INLINE Result reduce_rest(const Result& r, const Element& element, const Combine& combine) {
  constexpr int64_t n = length % W;
  if constexpr (n == 0) {
    return r;
  } else {
    const auto last = combine(r, element.template operator()<W>(length - n, n, some_lanes{}));
    return select_each<W>(n, last, r, make_indices<Result::kSize>{});
  }
}

}  // namespace detail

// Combines `length` >= U * W elements and returns a tuple of scalars. element.operator()<W>(i, n, form) returns a tuple
// with n elements from element i on.
template <int W, int U, int64_t length, typename Element, typename Combine>
TILE_INLINE auto reduce_lanes(const Element& element, const Combine& combine) {
  static_assert(length >= U * W);
  const auto whole = [&](int64_t i) __attribute__((always_inline)) {
    return element.template operator()<W>(i, index_constant<W>{}, all_lanes{});
  };
  int64_t i = 0;
  const auto r = detail::reduce_whole<W, U, length, true>(length, i, whole, combine);
  return detail::combine_lanes(detail::reduce_rest<W, length>(r, element, combine), combine);
}
// reduce_lanes() for masked elements. Vectors whose lanes are all set (before bounds.all) are combined U at a time, the
// others one at a time. If `Alike`, all elements from bounds.any on are equal, so combining stops when the result no
// longer changes.
template <int W, int U, int64_t length, bool Alike, typename Element, typename Combine>
TILE_INLINE auto reduce_lanes(lane_bounds bounds, const Element& element, const Combine& combine) {
  static_assert(length >= U * W);
  constexpr int64_t end = length / W * W;
  const auto whole = [&](int64_t i, auto form) __attribute__((always_inline)) {
    return element.template operator()<W>(i, index_constant<W>{}, form);
  };
  using Result = decltype(whole(0, some_lanes{}));
  const int64_t all = smaller(bounds.all, length);
  Result r;
  int64_t i = W;
  if (U * W <= all) {
    const auto within = [&](int64_t at) __attribute__((always_inline)) {
      return whole(at, all_lanes{});
    };
    r = detail::reduce_whole<W, U, length, false>(all, i, within, combine);
  } else {
    r = whole(0, some_lanes{});
  }
  if constexpr (end > W) {
    for (; i < end && i < bounds.any; i += W) r = combine(r, whole(i, some_lanes{}));
    bool changes = true;
    for (; i < end && changes; i += W) {
      const Result next = combine(r, whole(i, no_lanes{}));
      if constexpr (Alike) changes = !detail::are_same_bits(next, r, detail::make_indices<Result::kSize>{});
      r = next;
    }
    if constexpr (Alike) {
      for (; i < end; i += W) whole(i, no_lanes{});
    }
  }
  return detail::combine_lanes(detail::reduce_rest<W, length>(r, element, combine), combine);
}

// Sorts the n numbers p[0], p[stride], p[2 * stride], and so on. NaN counts as the largest number. Uses heapsort, which
// needs no extra memory and takes O(n log n) in all cases.
template <typename T>
void sort_line(T* p, int64_t stride, int64_t n, bool descending) {
  const auto before = [&](T a, T b) {
    const bool less = (a < b) || (b != b && a == a), greater = (b < a) || (a != a && b == b);
    return descending ? greater : less;
  };
  const auto sink = [&](int64_t root, int64_t end) {
    const T value = p[root * stride];
    for (int64_t child = 2 * root + 1; child < end; child = 2 * root + 1) {
      if (child + 1 < end && before(p[child * stride], p[(child + 1) * stride])) ++child;
      if (!before(value, p[child * stride])) break;
      p[root * stride] = p[child * stride];
      root = child;
    }
    p[root * stride] = value;
  };
  for (int64_t root = n / 2; root-- > 0;) sink(root, n);
  for (int64_t end = n; end-- > 1;) {
    const T largest = p[0];
    p[0] = p[end * stride];
    p[end * stride] = largest;
    sink(0, end);
  }
}

}  // namespace heddle::tile
