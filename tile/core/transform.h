// Coordinate transforms of one dimension: from an upper (logical) index to a lower index, which is nearer to memory.
// transform_many.h has the transforms of several dimensions. docs/design/tile.md has a table of all transforms.
//
// Every transform T has
//   T::kLower, T::kUpper        the number of lower and of upper dimensions
//   t.upper_length<I>()         the length of upper dimension I, as a number (core/number.h)
//   t.lower(up, low)            computes the lower indices of upper indices; defined for all integers, valid or not
//   t.update(up, step, low, low_step)   `up` has just advanced by `step`: advances `low` to the result of
//                               lower(up, low), and sets `low_step` to the change of `low`
//   T::kLinear                  true if `low_step` depends only on `step` and not on `up`
//   t.valid(up, low)            true if an upper index within the upper lengths has a valid lower index
//   T::kPredicated              true if valid() may return false
//   t.consistent()              true if all valid indices are within the lower lengths
//   t.lanes<Values>(up, low, width, merged)   computes facts about a group of lanes (core/contiguity.h); returns false
//                               if some lanes of a group may be valid and others invalid
// pass_through(), pad() and the other functions below return transforms whose lower lengths are not yet known.
// transform() (core/view.h) adds the lower lengths.
#pragma once

#include "tile/core/contiguity.h"
#include "tile/core/number.h"
#include "tile/core/tuple.h"

namespace heddle::tile {

namespace detail {

// The members that most transforms share. `Value`: the numbers of the transform, or tuples of them.
template <int Lower, int Upper, bool Linear, typename... Value>
struct Transform : tuple<Value...> {
  static constexpr int kLower = Lower, kUpper = Upper;
  static constexpr bool kLinear = Linear, kPredicated = false;

  template <typename Index>
  TILE_HD constexpr bool valid(const Index*, const Index*) const {
    return true;
  }
  TILE_HD constexpr bool consistent() const { return true; }
};
template <int Lower, int Upper, bool Linear, typename... Number>
struct PlainTransform : Transform<Lower, Upper, Linear, Number...> {
  static constexpr bool kStatic = (is_constant<Number> && ...), kWide = any_wide<Number...>;
};
// A transform whose lower index advances as the upper index does.
template <typename... Number>
struct Shift : PlainTransform<1, 1, true, Number...> {
  template <typename Index>
  TILE_HD constexpr void update(const Index*, const Index* step, Index* low, Index* low_step) const {
    low_step[0] = step[0];
    low[0] += step[0];
  }
};

}  // namespace detail

// low = up
template <typename Length>
struct PassThrough : detail::Shift<Length> {
  TILE_HD constexpr Length length() const { return get<0>(*this); }
  template <int>
  TILE_HD constexpr auto upper_length() const {
    return length();
  }
  template <typename Index>
  TILE_HD constexpr void lower(const Index* up, Index* low) const {
    low[0] = up[0];
  }
  template <bool Values>
  TILE_HD constexpr bool lanes(const Lanes* up, Lanes* low, int, Merged&) const {
    low[0] = up[0];
    return true;
  }
};

namespace detail {

// A transform whose lower length is not known yet. Calling it with the length returns T<Length, P...>, made from the
// length and the parameters.
template <template <typename...> typename T, typename... P>
struct OnLength {
  tuple<P...> parameters;
  template <typename Length>
  TILE_HD constexpr auto operator()(Length length) const {
    return make(length, make_indices<sizeof...(P)>{});
  }
  template <typename Length, int... I>
  TILE_HD constexpr T<Length, P...> make(Length length, indices<I...>) const {
    return {make_tuple(length, get<I>(parameters)...)};
  }
};

template <template <typename...> typename T, typename... P>
TILE_HD constexpr OnLength<T, P...> on_length(P... parameters) {
  return {make_tuple(parameters...)};
}

}  // namespace detail

TILE_HD constexpr auto pass_through() {
  return detail::on_length<PassThrough>();
}

// low = up - left. Upper indices whose lower index is outside the lower dimension are invalid.
template <typename Length, typename Left, typename Right>
struct Pad : detail::Shift<Length, Left, Right> {
  TILE_HD constexpr Length length() const { return get<0>(*this); }
  TILE_HD constexpr Left left() const { return get<1>(*this); }
  TILE_HD constexpr Right right() const { return get<2>(*this); }
  template <typename T>
  TILE_HD static constexpr bool nonzero() {
    if constexpr (is_constant<T>) return T::value != 0;
    return true;
  }
  static constexpr bool kBelow = nonzero<Left>(), kAbove = nonzero<Right>(), kPredicated = kBelow || kAbove;

  template <int>
  TILE_HD constexpr auto upper_length() const {
    return plus(plus(length(), left()), right());
  }
  template <typename Index>
  TILE_HD constexpr void lower(const Index* up, Index* low) const {
    low[0] = up[0] - static_cast<Index>(left());
  }
  template <typename Index>
  TILE_HD constexpr bool valid(const Index*, const Index* low) const {
    if constexpr (kBelow && kAbove) {  // one unsigned comparison: a negative index becomes larger than any length
      using Unsigned = uint_t<sizeof(Index)>;
      return static_cast<Unsigned>(low[0]) < static_cast<Unsigned>(static_cast<Index>(length()));
    } else {
      return (!kBelow || low[0] >= 0) && (!kAbove || low[0] < static_cast<Index>(length()));
    }
  }
  TILE_HD constexpr bool consistent() const { return left() >= 0 && right() >= 0; }
  template <bool Values>
  TILE_HD constexpr bool lanes(const Lanes* up, Lanes* low, int width, Merged&) const {
    const Fact before = fact<Values>(left()), behind = fact<Values>(right());
    low[0] = detail::shift(up[0], before);
    return detail::bounds_uniform(low[0], fact<Values>(length()), width, !before.known || before.value != 0,
                                  !behind.known || behind.value != 0);
  }
};

// Pads the dimension: `left` invalid indices before it and `right` invalid indices after it.
template <typename Left, typename Right>
TILE_HD constexpr auto pad(Left left, Right right) {
  return detail::on_length<Pad>(left, right);
}
template <typename Left>
TILE_HD constexpr auto left_pad(Left left) {
  return pad(left, fixed<0>());
}
template <typename Right>
TILE_HD constexpr auto right_pad(Right right) {
  return pad(fixed<0>(), right);
}

// low = begin + up * step, for `count` upper indices.
template <typename Length, typename Begin, typename Count, typename Step>
struct Slice : detail::PlainTransform<1, 1, true, Length, Begin, Count, Step> {
  TILE_HD constexpr Length length() const { return get<0>(*this); }
  TILE_HD constexpr Begin begin() const { return get<1>(*this); }
  TILE_HD constexpr Count count() const { return get<2>(*this); }
  TILE_HD constexpr Step step() const { return get<3>(*this); }
  template <int>
  TILE_HD constexpr auto upper_length() const {
    return count();
  }
  template <typename Index>
  TILE_HD constexpr void lower(const Index* up, Index* low) const {
    low[0] = static_cast<Index>(begin()) + up[0] * static_cast<Index>(step());
  }
  template <typename Index>
  TILE_HD constexpr void update(const Index*, const Index* up_step, Index* low, Index* low_step) const {
    low_step[0] = up_step[0] * static_cast<Index>(step());
    low[0] += low_step[0];
  }
  TILE_HD constexpr bool consistent() const {
    if (count() <= 0) return count() == 0;
    const int64_t first = begin(), last = first + (int64_t(count()) - 1) * int64_t(step()), end = length();
    return first >= 0 && first < end && last >= 0 && last < end;
  }
  template <bool Values>
  TILE_HD constexpr bool lanes(const Lanes* up, Lanes* low, int, Merged&) const {
    low[0] = detail::shift(detail::scale(up[0], fact<Values>(step())), fact<Values>(begin()));
    return true;
  }
};

// Selects `count` indices: begin, begin + step, begin + 2 * step, and so on. `step` may be negative.
template <typename Begin, typename Count, typename Step>
TILE_HD constexpr auto slice(Begin begin, Count count, Step step) {
  return detail::on_length<Slice>(begin, count, step);
}
template <typename Begin, typename Count>
TILE_HD constexpr auto slice(Begin begin, Count count) {
  return slice(begin, count, fixed<1>());
}

// low = up + by. The length does not change. Upper indices whose lower index is outside the lower dimension are
// invalid.
template <typename Length, typename By>
struct Offset : detail::Shift<Length, By> {
  static constexpr bool kPredicated = true;

  TILE_HD constexpr Length length() const { return get<0>(*this); }
  TILE_HD constexpr By by() const { return get<1>(*this); }
  template <int>
  TILE_HD constexpr auto upper_length() const {
    return length();
  }
  template <typename Index>
  TILE_HD constexpr void lower(const Index* up, Index* low) const {
    low[0] = up[0] + static_cast<Index>(by());
  }
  template <typename Index>
  TILE_HD constexpr bool valid(const Index*, const Index* low) const {
    return low[0] >= 0 && low[0] < static_cast<Index>(length());
  }
  template <bool Values>
  TILE_HD constexpr bool lanes(const Lanes* up, Lanes* low, int width, Merged&) const {
    const Fact distance = fact<Values>(by());
    low[0] = detail::shift(up[0], distance);
    return detail::bounds_uniform(low[0], fact<Values>(length()), width, !distance.known || distance.value < 0,
                                  !distance.known || distance.value > 0);
  }
};

template <typename By>
TILE_HD constexpr auto offset(By by) {
  return detail::on_length<Offset>(by);
}

// low = at. Holds the index of a lower dimension constant, so there is no upper dimension.
template <typename Length, typename At>
struct Freeze : detail::PlainTransform<1, 0, true, Length, At> {
  TILE_HD constexpr Length length() const { return get<0>(*this); }
  TILE_HD constexpr At at() const { return get<1>(*this); }
  template <typename Index>
  TILE_HD constexpr void lower(const Index*, Index* low) const {
    low[0] = static_cast<Index>(at());
  }
  template <typename Index>
  TILE_HD constexpr void update(const Index*, const Index*, Index*, Index* low_step) const {
    low_step[0] = 0;
  }
  TILE_HD constexpr bool consistent() const { return at() >= 0 && at() < length(); }
  template <bool Values>
  TILE_HD constexpr bool lanes(const Lanes*, Lanes* low, int, Merged&) const {
    low[0] = detail::shift({.align = 0}, fact<Values>(at()));
    return true;
  }
};

template <typename At>
TILE_HD constexpr auto freeze(At at) {
  return detail::on_length<Freeze>(at);
}

// Adds upper dimensions without lower dimensions (broadcast): all indices of these dimensions access the same elements.
template <typename... Length>
struct Replicate : detail::Transform<0, sizeof...(Length), true, tuple<Length...>> {
  static constexpr bool kStatic = (is_constant<Length> && ...), kWide = any_wide<Length...>;

  TILE_HD constexpr tuple<Length...> lengths() const { return get<0>(*this); }
  template <int I>
  TILE_HD constexpr auto upper_length() const {
    return get<I>(lengths());
  }
  template <typename Index>
  TILE_HD constexpr void lower(const Index*, Index*) const {}
  template <typename Index>
  TILE_HD constexpr void update(const Index*, const Index*, Index*, Index*) const {}
  template <bool Values>
  TILE_HD constexpr bool lanes(const Lanes*, Lanes*, int, Merged&) const {
    return true;
  }
};

namespace detail {

template <typename... Length>
struct ReplicateOver {
  tuple<Length...> lengths;
  TILE_HD constexpr Replicate<Length...> operator()() const { return {make_tuple(lengths)}; }
};

}  // namespace detail

template <typename... Length>
TILE_HD constexpr auto replicate(Length... lengths) {
  return detail::ReplicateOver<Length...>{make_tuple(lengths...)};
}
// Adds one broadcast dimension.
template <typename Length>
TILE_HD constexpr auto insert(Length length) {
  return replicate(length);
}

}  // namespace heddle::tile
