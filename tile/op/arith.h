// Elementwise arithmetic with the semantics of the IR's primitives, for operations that are not plain operators.
#pragma once

#include "tile/arch/vec.h"

namespace heddle::tile {

// The sign: -1 or 1. NaN and zeros are returned unchanged.
template <typename T, int W>
TILE_INLINE vec<T, W> sign(vec<T, W> a) {
  const vec<T, W> z = zero<T, W>(), r = select(a > z, splat<W>(T(1)), a);
  if constexpr (is_signed<T> || is_float<T>) {
    return select(a < z, splat<W>(T(-1)), r);
  } else {
    return r;
  }
}

// x / (1 + |x|). If |x| exceeds 2^60 or is infinite, the result is the sign of x.
template <typename T, int W>
TILE_INLINE vec<T, W> softsign(vec<T, W> a) {
  const vec<T, W> most = splat<W>(T(0x1p60)), x = max(-most, min(most, a));
  return x / (splat<W>(T(1)) + abs(x));
}

template <typename T, int W>
TILE_INLINE mask<sizeof(T), W> is_inf(vec<T, W> a, bool positive = true, bool negative = true) {
  const vec<T, W> inf = splat<W>(T(__builtin_inf()));
  if (positive && negative) return abs(a) == inf;
  if (positive) return a == inf;
  if (negative) return a == -inf;
  return a < -inf;
}

// The remainder of a / b, with the sign of a. For integers, the remainder of a division by zero is 0.
template <typename T, int W>
TILE_INLINE vec<T, W> rem(vec<T, W> a, vec<T, W> b) {
  if constexpr (is_same<T, float>) {
    return map_lanes(a, b, [](float x, float y) { return __builtin_fmodf(x, y); });
  } else if constexpr (is_same<T, double>) {
    return map_lanes(a, b, [](double x, double y) { return __builtin_fmod(x, y); });
  } else {
    return a % b;
  }
}
// The remainder of a / b, with the sign of b. For integers, the remainder of a division by zero is 0.
template <typename T, int W>
TILE_INLINE vec<T, W> mod(vec<T, W> a, vec<T, W> b) {
  const vec<T, W> r = rem(a, b);
  if constexpr (is_signed<T>) {
    const vec<T, W> z = zero<T, W>();
    const auto fix = (r != z) & ((r < z) ^ (b < z));
    return select(fix, r + b, r);
  } else {
    return r;
  }
}

// Shifts. The result is 0 if the amount is negative or at least the width of the type. shr() fills signed numbers with
// copies of the sign bit. A number of fewer than 8 bits is stored in a byte with its sign extended; its width is
// `Bits`.
template <typename T, int W>
TILE_INLINE vec<T, W> shl(vec<T, W> a, vec<T, W> amount) {
  using U = uint_t<sizeof(T)>;
  const auto valid = bit_cast<U>(amount) < U(8 * sizeof(T));
  return bit_cast<T>(select(valid, bit_cast<U>(a) << select(valid, bit_cast<U>(amount), zero<U, W>()), zero<U, W>()));
}
template <int Bits = 0, typename T, int W>
TILE_INLINE vec<T, W> shr(vec<T, W> a, vec<T, W> amount) {
  using U = uint_t<sizeof(T)>;
  const auto valid = bit_cast<U>(amount) < U(Bits > 0 ? Bits : 8 * sizeof(T));
  return select(valid, a >> bit_cast<T>(select(valid, bit_cast<U>(amount), zero<U, W>())), zero<T, W>());
}

// Integer power by repeated multiplication, with wrap-around. A negative exponent gives 0 unless the base is 1 or -1.
template <typename T, int W>
TILE_INLINE vec<T, W> pow_int(vec<T, W> a, vec<T, W> b) {
  return map_lanes(a, b, [](T base, T exponent) -> T {
    using U = uint_t<sizeof(T)>;
    if constexpr (is_signed<T>) {
      if (exponent < 0) return base == 1 ? T(1) : base == -1 ? (exponent & 1 ? T(-1) : T(1)) : T(0);
    }
    U r = 1, x = static_cast<U>(base);
    for (U e = static_cast<U>(exponent); e != 0; e = static_cast<U>(e >> 1)) {
      if (e & 1) r = static_cast<U>(uint64_t(r) * x);
      x = static_cast<U>(uint64_t(x) * x);
    }
    return static_cast<T>(r);
  });
}

// Limits `a` to the range of To, an integer type of 8 or 16 bits, less the zero point Zero. Does not round. NaN becomes
// -Zero.
template <typename To, int Zero = 0, int W>
TILE_INLINE vec<float, W> saturated(vec<float, W> a) {
  constexpr int bits = 8 * sizeof(To) - (is_signed<To> ? 1 : 0);
  constexpr float low = is_signed<To> ? -float(1 << bits) : 0.f, high = float((1 << bits) - 1);
  vec<float, W> inside = detail::greater_or_second(a, splat<W>(low - Zero));
  inside = detail::less_or_second(inside, splat<W>(high - Zero));
  if constexpr (is_signed<To>) inside = select(is_nan(a), splat<W>(float(-Zero)), inside);
  return inside;
}

// Casts with the rules of the IR's primitive. From float to integer, the value is truncated and saturated, and NaN
// becomes 0. Other casts are those of convert().
template <typename To, typename T, int W>
TILE_INLINE vec<To, W> cast(vec<T, W> a) {
  if constexpr (is_same<T, float> && !is_float<To> && sizeof(To) < 4 && W > 1) {
    // The type's numbers are floats: both bounds are applied before the conversion.
    return convert<To>(convert<int32_t>(saturated<To>(a)));
  } else if constexpr (is_float<T> && !is_float<To>) {
    constexpr int bits = 8 * sizeof(To);
    constexpr T low = is_signed<To> ? -T(uint64_t(1) << (bits - 1)) : T(0);
    constexpr T end = T(uint64_t(1) << (bits - 1)) * (is_signed<To> ? T(1) : T(2));  // the first value too large
    constexpr To smallest = is_signed<To> ? To(uint_t<sizeof(To)>(1) << (bits - 1)) : To(0);
    constexpr To largest = To(~smallest);
    const auto too_large = a >= splat<W>(end);
    const auto too_small = ~(a > splat<W>(low));
    const vec<T, W> inside = select(too_large | too_small, zero<T, W>(), a);
    vec<To, W> r;
    if constexpr (bits == 64 && !is_signed<To>) {
      r = map_lanes_to<To>(inside, [](T x) { return static_cast<To>(x); });
    } else {
      r = convert<To>(inside);
    }
    r = select(too_large, splat<W>(largest), r);
    r = select(too_small, splat<W>(smallest), r);
    return select(is_nan(a), zero<To, W>(), r);
  } else {
    return convert<To>(a);
  }
}

// Converts a number to float, as the first step of a conversion to a narrower type. Inexact values are rounded to odd,
// so that the second rounding can still tell on which side of a tie the number is.
template <typename T, int W>
TILE_INLINE vec<float, W> to_odd(vec<T, W> a) {
  if constexpr (is_same<T, double>) {
    const vec<float, W> near = convert<float>(a);
    const vec<double, W> back = convert<double>(near);
    const auto inexact = (back != a) & (abs(back) < splat<W>(__builtin_inf()));
    const vec<uint32_t, W> bits = bit_cast<uint32_t>(near);
    const vec<uint32_t, W> away = select(abs(back) < abs(a), bits + 1u, bits - 1u);
    const vec<uint32_t, W> odd = select((bits & 1u) == zero<uint32_t, W>(), away, bits);
    return select(inexact, bit_cast<float>(odd), near);
  } else if constexpr (!is_float<T> && sizeof(T) == 8) {
    // A double has 53 significant bits. In a longer integer, the 11 lowest bits are replaced by one bit that tells
    // whether any of them was set.
    const vec<uint64_t, W> bits = bit_cast<uint64_t>(a), low = bits & uint64_t(0x7ff);
    const vec<uint64_t, W> shortened = select(low != zero<uint64_t, W>(), (bits ^ low) | uint64_t(0x800), bits);
    const auto is_long = bits + uint64_t(is_signed<T> ? int64_t(1) << 53 : 0) >= uint64_t(1) << (53 + is_signed<T>);
    return to_odd(convert<double>(bit_cast<T>(select(is_long, shortened, bits))));
  } else if constexpr (!is_float<T> && sizeof(T) == 4) {
    return to_odd(convert<double>(a));
  } else {
    return convert<float>(a);
  }
}

}  // namespace heddle::tile
