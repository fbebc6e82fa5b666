// Rounding by additions, which GPUs execute at a higher rate than conversions.
#pragma once

#include "tile/op/arith.h"

namespace heddle::tile {

namespace detail {
// 1.5 * 2^23. The last bit of a sum of this number and one below 2^22 is 1, so the addition rounds, ties to even.
inline constexpr float kRoundingShift = 12582912.f;
inline constexpr int32_t kRoundingBits = 0x4b400000;  // of this number
}  // namespace detail

// Rounds to the nearest integer, ties to even. Requires numbers below 2^22.
template <int W>
TILE_INLINE vec<float, W> round_even_small(vec<float, W> a) {
  const vec<float, W> shift = splat<W>(detail::kRoundingShift);
  return (a + shift) - shift;
}

// Rounds to the nearest integer, ties to even, and converts to integers. Requires numbers below 2^22.
template <int W>
TILE_INLINE vec<int32_t, W> round_small_to_int(vec<float, W> a) {
  return bit_cast<int32_t>(a + splat<W>(detail::kRoundingShift)) - splat<W>(detail::kRoundingBits);
}

// Converts integers below 2^22.
template <int W>
TILE_INLINE vec<float, W> small_to_float(vec<int32_t, W> a) {
  return bit_cast<float>(a + splat<W>(detail::kRoundingBits)) - splat<W>(detail::kRoundingShift);
}

namespace detail {
// The numbers whose quotients by `divisor` are limited as saturated() limits them.
template <typename To, int Zero, int W>
TILE_INLINE vec<float, W> saturated_dividend(vec<float, W> a, float divisor) {
  constexpr int bits = 8 * sizeof(To) - (is_signed<To> ? 1 : 0);
  constexpr float low = is_signed<To> ? -float(1 << bits) : 0.f, high = float((1 << bits) - 1);
  vec<float, W> inside = greater_or_second(a, splat<W>((low - Zero) * divisor));
  inside = less_or_second(inside, splat<W>((high - Zero) * divisor));
  if constexpr (is_signed<To>) inside = select(is_nan(a), splat<W>(-Zero * divisor), inside);
  return inside;
}
}  // namespace detail

// A number within an ulp of the quotient a / divisor, limited as saturated() limits it. `reciprocal` and `rest` are
// 1 / divisor in two parts. For nearly all divisors, these numbers round to the same integers as the quotients.
template <typename To, int Zero = 0, int W>
TILE_INLINE vec<float, W> saturated_near_quotient(vec<float, W> a, float divisor, float reciprocal, float rest) {
  const vec<float, W> inside = detail::saturated_dividend<To, Zero>(a, divisor);
  return fma(inside, reciprocal, inside * splat<W>(rest));
}

// The quotient a / divisor, rounded to f32 as a division rounds it, and limited as saturated() limits it. Requires a
// normal divisor above 0 whose products with numbers of To are normal. `reciprocal` and `rest` are 1 / divisor in two
// parts. By them the quotient is one of the two floats around the exact one; its remainder, which is exact, then
// decides.
template <typename To, int Zero = 0, int W>
TILE_INLINE vec<float, W> saturated_quotient(vec<float, W> a, float divisor, float reciprocal, float rest) {
  const vec<float, W> inside = detail::saturated_dividend<To, Zero>(a, divisor);
  const vec<float, W> quotient = fma(inside, reciprocal, inside * splat<W>(rest));
  return fma(fma(quotient, -divisor, inside), reciprocal, quotient);
}

// Rounds to the nearest integer, ties to even, and adds Zero. The result need not be in the range of To, an integer
// type of 8 bits, but becomes the right number if it is saturated to this range. NaN becomes 0 if To is signed,
// otherwise a number that is saturated to 0.
template <typename To, int Zero = 0, int W>
TILE_INLINE vec<int32_t, W> unsaturated(vec<float, W> a) {
  // As integers, the bits of positive floats have the order of the floats, so sums that are too large for rounding are
  // in order, too.
  constexpr float kLeast = -8388608.f;
  vec<float, W> bounded = detail::greater_or_second(a, splat<W>(kLeast));
  if constexpr (is_signed<To>) bounded = select(is_nan(a), splat<W>(float(-Zero)), bounded);
  return bit_cast<int32_t>(bounded + splat<W>(detail::kRoundingShift)) +
         splat<W>(int32_t(Zero) - detail::kRoundingBits);
}

}  // namespace heddle::tile
