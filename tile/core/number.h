// Extents, strides and paddings whose values the compiler knows completely, partly, or not at all. These kinds may be
// mixed:
//
//   fixed<8>()         the compiler knows the value (index_constant)
//   multiple_of<8>(n)  a run-time value that is known to be a multiple of 8
//   n                  an int or int64_t about which nothing is known
//
// Arithmetic preserves this knowledge. Index arithmetic is 32 bits wide unless an operand is an int64_t.
#pragma once

#include "tile/core/config.h"
#include "tile/core/static_for.h"
#include "tile/core/types.h"

namespace heddle::tile {

template <int N>
TILE_HD constexpr index_constant<N> fixed() {
  return {};
}

template <int N, typename Int>
struct multiple {
  Int value;
  TILE_HD constexpr operator Int() const { return value; }
};
// Declares that N divides the value. The caller must guarantee this: the checks of a view (consistent()) do not detect
// a violation.
template <int N, typename Int>
TILE_HD constexpr multiple<N, Int> multiple_of(Int value) {
  static_assert(N > 0 && is_signed<Int>);
  return {value};
}

template <typename T>
inline constexpr bool is_constant = false;
template <int N>
inline constexpr bool is_constant<index_constant<N>> = true;

// The type that a number has in arithmetic: int or int64_t.
template <typename T>
struct integer_of {
  static_assert(is_signed<T> && !is_float<T>, "lengths, strides and indices are signed integers");
  using type = int_t<(sizeof(T) > 4 ? 8 : 4)>;
};
template <int N>
struct integer_of<index_constant<N>> {
  using type = int;
};
template <int N, typename Int>
struct integer_of<multiple<N, Int>> : integer_of<Int> {};

template <bool Wide>
using index_type = int_t<(Wide ? 8 : 4)>;
template <typename... T>
inline constexpr bool any_wide = ((sizeof(typename integer_of<T>::type) > 4) || ... || false);

TILE_HD constexpr int64_t gcd(int64_t a, int64_t b) {
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b != 0) {
    const int64_t r = a % b;
    a = b;
    b = r;
  }
  return a;
}

// The largest power of two that divides n. 0 if n is 0.
TILE_HD constexpr int64_t power_of_two_in(int64_t n) {
  return n & -n;
}
TILE_HD constexpr bool is_power_of_two(int64_t n) {
  return n > 0 && (n & (n - 1)) == 0;
}

// What the compiler knows about a number: its value, or a divisor of its value.
struct Fact {
  bool known = false;
  int64_t value = 0;
  int64_t divisor = 1;  // equal to the value if that is known
};

namespace detail {

template <typename T>
inline constexpr int promised = 1;
template <int N, typename Int>
inline constexpr int promised<multiple<N, Int>> = N;
template <int N>
inline constexpr int promised<index_constant<N>> = N;

}  // namespace detail

// Returns what the compiler knows about a number from its type. With Values, the value itself is known, too.
template <bool Values, typename T>
TILE_HD constexpr Fact fact(T number) {
  if constexpr (is_constant<T> || Values) {
    return {true, static_cast<int64_t>(number), static_cast<int64_t>(number)};
  } else {
    return {false, 0, detail::promised<T>};
  }
}

namespace detail {

// Returns `value` as a number that is known to be a multiple of Divisor.
template <int Divisor, typename Int>
TILE_HD constexpr auto keep(Int value) {
  if constexpr (Divisor > 1) {
    return multiple<Divisor, Int>{value};
  } else {
    return value;
  }
}

}  // namespace detail

template <typename A, typename B>
TILE_HD constexpr auto times(A a, B b) {
  constexpr int64_t divisor = int64_t(detail::promised<A>) * detail::promised<B>;
  if constexpr (is_constant<A> && is_constant<B>) {
    return index_constant<A::value * B::value>{};
  } else if constexpr (divisor == 0) {
    return index_constant<0>{};
  } else {
    using Int = index_type<any_wide<A, B>>;
    constexpr int64_t kept = gcd(divisor, 0) < (1 << 30) ? gcd(divisor, 0) : gcd(divisor, 1 << 20);
    return detail::keep<int(kept)>(static_cast<Int>(static_cast<Int>(a) * static_cast<Int>(b)));
  }
}

template <typename A, typename B>
TILE_HD constexpr auto plus(A a, B b) {
  if constexpr (is_constant<A> && is_constant<B>) {
    return index_constant<A::value + B::value>{};
  } else {
    using Int = index_type<any_wide<A, B>>;
    constexpr int64_t divisor = gcd(detail::promised<A>, detail::promised<B>);
    return detail::keep<int(divisor)>(static_cast<Int>(static_cast<Int>(a) + static_cast<Int>(b)));
  }
}

// The quotient, rounded down, and the remainder. 0 <= rest < b also if a is negative, so carries of indices work in
// both directions. b = 0 (an empty tensor) is treated as 1.
template <typename Index>
struct Quotient {
  Index quotient, rest;
};
template <typename Index, typename B>
TILE_HD constexpr Quotient<Index> floor_divide(Index a, B b) {
  if constexpr (is_constant<B>) {
    if constexpr (is_power_of_two(B::value)) {
      return {static_cast<Index>((a - (a & (B::value - 1))) / B::value), static_cast<Index>(a & (B::value - 1))};
    }
  }
  const Index divisor = static_cast<Index>(b) == 0 ? 1 : static_cast<Index>(b);
  Index quotient = a / divisor, rest = a % divisor;
  if (rest < 0) {
    rest += divisor;
    quotient -= 1;
  }
  return {quotient, rest};
}

}  // namespace heddle::tile
