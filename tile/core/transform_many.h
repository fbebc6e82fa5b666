// Coordinate transforms that join, split or mix dimensions. transform.h describes the interface of transforms.
#pragma once

#include "tile/core/transform.h"

namespace heddle::tile {

// The length of the lower dimension of a chain's last transform. An index in this dimension selects an element of the
// buffer. The number of elements is unknown.
struct Unbounded {};

namespace detail {

template <typename T>
inline constexpr bool is_bound = true;
template <>
inline constexpr bool is_bound<Unbounded> = false;

template <typename T>
inline constexpr bool bound_is_constant = is_constant<T>;
template <>
inline constexpr bool bound_is_constant<Unbounded> = true;

template <typename T>
inline constexpr bool bound_is_wide = any_wide<T>;
template <>
inline constexpr bool bound_is_wide<Unbounded> = false;

// The smallest and largest value of sum(index * stride) over a box of indices.
struct Range {
  int64_t low = 0, high = 0;
  bool empty = false;
  TILE_HD constexpr void add(int64_t length, int64_t stride) {
    empty = empty || length <= 0;
    (stride < 0 ? low : high) += (length - 1) * stride;
  }
};

// Multiplies `count` by `factor` if the product is within [0, limit]. Otherwise returns false.
TILE_HD constexpr bool multiply_within(int64_t& count, int64_t factor, int64_t limit) {
  if (factor < 0 || (factor != 0 && count > limit / factor)) return false;
  count *= factor;
  return true;
}

TILE_HD constexpr bool divide_exactly(int64_t& number, int64_t by) {
  if (by <= 0) return by == 0 && number == 0;
  const bool exact = number % by == 0;
  number /= by;
  return exact;
}

}  // namespace detail

// low = sum(up[i] * stride[i])
template <typename Low, typename Lengths, typename Strides>
struct Embed;
template <typename Low, typename... Length, typename... Stride>
struct Embed<Low, tuple<Length...>, tuple<Stride...>>
    : detail::Transform<1, sizeof...(Length), true, Low, tuple<Length...>, tuple<Stride...>> {
  using Embed::Transform::kUpper;
  static_assert(sizeof...(Length) == sizeof...(Stride), "a stride for each length");
  static constexpr bool kStatic =
      detail::bound_is_constant<Low> && (is_constant<Length> && ...) && (is_constant<Stride> && ...);
  static constexpr bool kWide = detail::bound_is_wide<Low> || any_wide<Length...> || any_wide<Stride...>;

  TILE_HD constexpr Low length() const { return get<0>(*this); }
  TILE_HD constexpr tuple<Length...> lengths() const { return get<1>(*this); }
  TILE_HD constexpr tuple<Stride...> strides() const { return get<2>(*this); }
  template <int I>
  TILE_HD constexpr auto upper_length() const {
    return get<I>(lengths());
  }
  template <typename Index>
  TILE_HD constexpr Index dot(const Index* up) const {
    return dot(up, detail::make_indices<kUpper>{});
  }
  template <typename Index>
  TILE_HD constexpr void lower(const Index* up, Index* low) const {
    low[0] = dot(up);
  }
  template <typename Index>
  TILE_HD constexpr void update(const Index*, const Index* step, Index* low, Index* low_step) const {
    low_step[0] = dot(step);
    low[0] += low_step[0];
  }
  TILE_HD constexpr detail::Range range() const { return range(detail::make_indices<kUpper>{}); }
  TILE_HD constexpr bool consistent() const {
    if constexpr (detail::is_bound<Low>) {
      const detail::Range r = range();
      return r.empty || (r.low >= 0 && r.high < static_cast<int64_t>(length()));
    }
    return true;
  }
  template <bool Values>
  TILE_HD constexpr bool lanes(const Lanes* up, Lanes* low, int width, Merged&) const {
    return lanes<Values>(up, low, width, detail::make_indices<kUpper>{});
  }

 private:
  template <typename Index, int... I>
  TILE_HD constexpr Index dot(const Index* up, detail::indices<I...>) const {
    return ((up[I] * static_cast<Index>(get<I>(strides()))) + ... + Index(0));
  }
  template <int... I>
  TILE_HD constexpr detail::Range range(detail::indices<I...>) const {
    detail::Range r;
    (r.add(get<I>(lengths()), get<I>(strides())), ...);
    return r;
  }
  template <bool Values, int... I>
  TILE_HD constexpr bool lanes(const Lanes* up, Lanes* low, int width, detail::indices<I...>) const {
    const Fact stride[kUpper + 1] = {fact<Values>(get<I>(strides()))...};
    low[0] = detail::linear(up, stride, kUpper, width);
    return true;
  }
};

// For windows, use lengths (window, outputs) and strides (dilation, stride): the tap and the output then determine the
// input index.
template <typename... Length, typename... Stride>
TILE_HD constexpr auto embed(tuple<Length...> lengths, tuple<Stride...> strides) {
  return detail::on_length<Embed>(lengths, strides);
}

namespace detail {

// The strides of a dense tensor whose last dimension is contiguous.
TILE_HD constexpr tuple<> packed_strides() {
  return {};
}
template <typename First, typename... Rest>
TILE_HD constexpr auto packed_strides(First, Rest... rest) {
  if constexpr (sizeof...(Rest) == 0) {
    return make_tuple(fixed<1>());
  } else {
    const auto inner = packed_strides(rest...);
    return concat(make_tuple(times(get<0>(make_tuple(rest...)), get<0>(inner))), inner);
  }
}

}  // namespace detail

// Splits the lower dimension into digits, the last one fastest. The product of the digits' lengths is the dimension's
// length.
template <typename Low, typename Lengths, typename Strides>
struct Unmerge;
template <typename Low, typename... Length, typename Strides>
struct Unmerge<Low, tuple<Length...>, Strides> : Embed<Low, tuple<Length...>, Strides> {
  TILE_HD constexpr bool consistent() const { return consistent(detail::make_indices<sizeof...(Length)>{}); }

 private:
  template <int... I>
  TILE_HD constexpr bool consistent(detail::indices<I...>) const {
    int64_t rest = this->length();
    const bool divides = (detail::divide_exactly(rest, get<I>(this->lengths())) && ...);
    return divides && (rest == 1 || ((get<I>(this->lengths()) == 0) || ...));
  }
};

template <typename... Length>
TILE_HD constexpr auto unmerge(Length... lengths) {
  return detail::on_length<Unmerge>(make_tuple(lengths...), detail::packed_strides(lengths...));
}

// Merges several lower dimensions into one index; the last dimension is the fastest. If the index is negative or beyond
// the end, the first dimension gets the excess, so that steps in both directions carry correctly.
template <typename... Length>
struct Merge : detail::Transform<sizeof...(Length), 1, false, tuple<Length...>> {
  using Merge::Transform::kLower;
  static_assert(kLower >= 1 && kLower <= Merged::kMaxDigits);
  static constexpr bool kStatic = (is_constant<Length> && ...), kWide = any_wide<Length...>;

  TILE_HD constexpr tuple<Length...> lengths() const { return get<0>(*this); }
  template <int>
  TILE_HD constexpr auto upper_length() const {
    return product(lengths());
  }
  template <typename Index>
  TILE_HD constexpr void lower(const Index* up, Index* low) const {
    Index rest = up[0];
    split(rest, low, detail::make_indices<kLower - 1>{});
    low[0] = rest;
  }
  // The digits of the step do not depend on the index, so a loop with a constant step computes them only once. Each
  // iteration then costs an addition, a comparison and a carry per digit.
  template <typename Index>
  TILE_HD constexpr void update(const Index*, const Index* step, Index* low, Index* low_step) const {
    Index rest = step[0], carry = 0;
    advance(rest, carry, low, low_step, detail::make_indices<kLower - 1>{});
    low_step[0] = rest + carry;
    low[0] += low_step[0];
  }
  // As update(), for a step whose digits, lower(step), are already known.
  template <typename Index>
  TILE_HD constexpr void update_by_digits(const Index* digits, Index* low, Index* low_step) const {
    Index carry = 0;
    add_digits(digits, carry, low, low_step, detail::make_indices<kLower - 1>{});
    low_step[0] = digits[0] + carry;
    low[0] += low_step[0];
  }
  // True if the lengths' product is representable as an index.
  TILE_HD constexpr bool consistent() const { return consistent(detail::make_indices<kLower>{}); }
  template <bool Values>
  TILE_HD constexpr bool lanes(const Lanes* up, Lanes* low, int width, Merged& merged) const {
    merged.whole = up[0];
    merged.digits = kLower;
    set_lengths<Values>(merged, detail::make_indices<kLower>{});
    for (int i = 0; i < kLower; ++i) {
      low[i] = detail::digits(merged, i, i, width);
      low[i].origin = &merged;
      low[i].place = i;
    }
    return true;
  }

 private:
  template <typename Index, int... I>
  TILE_HD constexpr void split(Index& rest, Index* low, detail::indices<I...>) const {
    (split_digit<kLower - 1 - I>(rest, low), ...);
  }
  template <int Digit, typename Index>
  TILE_HD constexpr void split_digit(Index& rest, Index* low) const {
    const Quotient<Index> q = floor_divide(rest, get<Digit>(lengths()));
    low[Digit] = q.rest;
    rest = q.quotient;
  }
  template <typename Index, int... I>
  TILE_HD constexpr void advance(Index& rest, Index& carry, Index* low, Index* low_step, detail::indices<I...>) const {
    (advance_digit<kLower - 1 - I>(rest, carry, low, low_step), ...);
  }
  template <int Digit, typename Index>
  TILE_HD constexpr void advance_digit(Index& rest, Index& carry, Index* low, Index* low_step) const {
    const Index length = static_cast<Index>(get<Digit>(lengths()));
    const Quotient<Index> q = floor_divide(rest, get<Digit>(lengths()));
    const Index by = q.rest + carry;
    Index next = low[Digit] + by;
    carry = by != 0 && next >= length ? 1 : 0;  // with a step that is known to be 0, this code is removed
    next -= carry != 0 ? length : 0;
    low_step[Digit] = next - low[Digit];
    low[Digit] = next;
    rest = q.quotient;
  }
  template <typename Index, int... I>
  TILE_HD constexpr void add_digits(const Index* digits, Index& carry, Index* low, Index* low_step,
                                    detail::indices<I...>) const {
    (add_digit<kLower - 1 - I>(digits[kLower - 1 - I], carry, low, low_step), ...);
  }
  template <int Digit, typename Index>
  TILE_HD constexpr void add_digit(Index digit, Index& carry, Index* low, Index* low_step) const {
    const Index length = static_cast<Index>(get<Digit>(lengths())), by = digit + carry, next = low[Digit] + by;
    carry = next >= length ? 1 : 0;
    low_step[Digit] = carry != 0 ? by - length : by;
    low[Digit] += low_step[Digit];
  }
  template <int... I>
  TILE_HD constexpr bool consistent(detail::indices<I...>) const {
    constexpr int64_t kLimit = kWide ? 0x7fffffffffffffff : 0x7fffffff;
    int64_t count = 1;
    return (detail::multiply_within(count, get<I>(lengths()), kLimit) && ...);
  }
  template <bool Values, int... I>
  TILE_HD constexpr void set_lengths(Merged& merged, detail::indices<I...>) const {
    ((merged.lengths[I] = fact<Values>(get<I>(lengths()))), ...);
  }
  template <typename... T>
  TILE_HD static constexpr auto product(const tuple<T...>& t) {
    return product_from<0>(t, fixed<1>());
  }
  template <int I, typename Tuple, typename P>
  TILE_HD static constexpr auto product_from(const Tuple& t, P p) {
    if constexpr (I == Tuple::kSize) {
      return p;
    } else {
      return product_from<I + 1>(t, times(p, get<I>(t)));
    }
  }
};

namespace detail {

struct MergeAll {
  template <typename... Length>
  TILE_HD constexpr Merge<Length...> operator()(Length... lengths) const {
    return {make_tuple(make_tuple(lengths...))};
  }
};

}  // namespace detail

TILE_HD constexpr auto merge() {
  return detail::MergeAll{};
}

// low = up mod the lower length. Used for rings of buffers, and for broadcasts by repetition.
template <typename Low, typename Length>
struct Modulo : detail::PlainTransform<1, 1, false, Low, Length> {
  TILE_HD constexpr Low modulus() const { return get<0>(*this); }
  TILE_HD constexpr Length length() const { return get<1>(*this); }
  template <int>
  TILE_HD constexpr auto upper_length() const {
    return length();
  }
  template <typename Index>
  TILE_HD constexpr void lower(const Index* up, Index* low) const {
    low[0] = floor_divide(up[0], modulus()).rest;
  }
  template <typename Index>
  TILE_HD constexpr void update(const Index*, const Index* step, Index* low, Index* low_step) const {
    const Index bound = static_cast<Index>(modulus());
    Index next = low[0] + floor_divide(step[0], modulus()).rest;
    next -= next >= bound ? bound : 0;
    low_step[0] = next - low[0];
    low[0] = next;
  }
  TILE_HD constexpr bool consistent() const { return modulus() > 0 || length() == 0; }
  template <bool Values>
  TILE_HD constexpr bool lanes(const Lanes* up, Lanes* low, int width, Merged&) const {
    low[0] = detail::remainder(up[0], fact<Values>(modulus()), width);
    return true;
  }
};

template <typename Length>
TILE_HD constexpr auto modulo(Length length) {
  return detail::on_length<Modulo>(length);
}

// (row, column) -> (row, column ^ (row mod columns)). The number of columns is a power of two. The elements of one
// column are distributed over all columns, and so over all banks of shared memory.
template <typename Rows, typename Columns>
struct Xor : detail::PlainTransform<2, 2, false, Rows, Columns> {
  TILE_HD constexpr Rows rows() const { return get<0>(*this); }
  TILE_HD constexpr Columns columns() const { return get<1>(*this); }
  template <int I>
  TILE_HD constexpr auto upper_length() const {
    if constexpr (I == 0) {
      return rows();
    } else {
      return columns();
    }
  }
  template <typename Index>
  TILE_HD constexpr void lower(const Index* up, Index* low) const {
    low[0] = up[0];
    low[1] = up[1] ^ (up[0] & (static_cast<Index>(columns()) - 1));
  }
  template <typename Index>
  TILE_HD constexpr void update(const Index* up, const Index*, Index* low, Index* low_step) const {
    Index next[2] = {};
    lower(up, next);
    for (int i = 0; i < 2; ++i) {
      low_step[i] = next[i] - low[i];
      low[i] = next[i];
    }
  }
  TILE_HD constexpr bool consistent() const { return is_power_of_two(columns()); }
  // If all row indices are multiples of a power of two, the low bits of the column index do not change.
  template <bool Values>
  TILE_HD constexpr bool lanes(const Lanes* up, Lanes* low, int width, Merged&) const {
    low[0] = up[0];
    low[0].origin = nullptr;
    const int64_t mask = power_of_two_in(up[0].align), column = power_of_two_in(up[1].align);
    const int64_t kept = mask == 0 || (column != 0 && column < mask) ? column : mask;  // 0 counts as infinity
    const int64_t reach = up[1].step * (width - 1);
    if (!up[0].affine || !up[1].affine || up[0].step != 0 || up[1].step < 0 || (kept != 0 && reach >= kept)) {
      low[1] = detail::scattered();
    } else {
      low[1] = {.align = kept, .step = up[1].step};
    }
    return true;
  }
};

namespace detail {

struct XorOn {
  template <typename Rows, typename Columns>
  TILE_HD constexpr Xor<Rows, Columns> operator()(Rows rows, Columns columns) const {
    return {make_tuple(rows, columns)};
  }
};

}  // namespace detail

// An XOR swizzle of the lower dimensions (row, column).
TILE_HD constexpr auto xor_swizzle() {
  return detail::XorOn{};
}

// Gather: low = table[up]. A table entry outside of the lower dimension is invalid. The table is not read outside of
// its length.
template <typename Low, typename Length, typename Table>
struct Indexing;
template <typename Low, typename Length, typename Entry>
struct Indexing<Low, Length, const Entry*> : detail::Transform<1, 1, false, Low, Length, const Entry*> {
  static constexpr bool kPredicated = true, kStatic = false, kWide = any_wide<Low, Length>;

  TILE_HD constexpr Low bound() const { return get<0>(*this); }
  TILE_HD constexpr Length length() const { return get<1>(*this); }
  TILE_HD constexpr const Entry* table() const { return get<2>(*this); }
  template <int>
  TILE_HD constexpr auto upper_length() const {
    return length();
  }
  template <typename Index>
  TILE_HD constexpr void lower(const Index* up, Index* low) const {
    const bool inside = up[0] >= 0 && up[0] < static_cast<Index>(length());
    const int64_t entry = inside ? static_cast<int64_t>(table()[up[0]]) : -1;
    low[0] = entry >= 0 && entry < static_cast<int64_t>(bound()) ? static_cast<Index>(entry) : Index(-1);
  }
  template <typename Index>
  TILE_HD constexpr void update(const Index* up, const Index* step, Index* low, Index* low_step) const {
    low_step[0] = 0;
    if (step[0] == 0) return;
    Index next = 0;
    lower(up, &next);
    low_step[0] = next - low[0];
    low[0] = next;
  }
  template <typename Index>
  TILE_HD constexpr bool valid(const Index*, const Index* low) const {
    return low[0] >= 0;
  }
  TILE_HD constexpr bool consistent() const { return length() >= 0; }
  template <bool Values>
  TILE_HD constexpr bool lanes(const Lanes* up, Lanes* low, int, Merged&) const {
    const bool same = up[0].affine && up[0].step == 0;
    low[0] = same ? Lanes{} : detail::scattered();
    return same;
  }
};

// Selects the `length` rows that table[0 .. length) names. Entries are integers of any size.
template <typename Entry, typename Length>
TILE_HD constexpr auto indexing(const Entry* table, Length length) {
  return detail::on_length<Indexing>(length, table);
}

}  // namespace heddle::tile
