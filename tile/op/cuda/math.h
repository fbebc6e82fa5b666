// Elementary functions on the vectors of a GPU thread, by the device library lane by lane (in float at most 2 units in
// the last place, 4 for pow).
#pragma once

#include "tile/arch/sm80/approx.h"
#include "tile/op/arith.h"

namespace heddle::tile {

#define TILE_UNARY(NAME)                    \
  template <typename T, int W>              \
  TILE_INLINE vec<T, W> NAME(vec<T, W> a) { \
    return map_lanes(a, [](T x) -> T {      \
      if constexpr (is_same<T, float>) {    \
        return TILE_MATH(NAME##f)(x);       \
      } else {                              \
        return TILE_MATH(NAME)(x);          \
      }                                     \
    });                                     \
  }
TILE_UNARY(exp)
TILE_UNARY(exp2)
TILE_UNARY(expm1)
TILE_UNARY(log)
TILE_UNARY(log1p)
TILE_UNARY(sin)
TILE_UNARY(cos)
TILE_UNARY(tan)
TILE_UNARY(asin)
TILE_UNARY(acos)
TILE_UNARY(atan)
TILE_UNARY(sinh)
TILE_UNARY(cosh)
TILE_UNARY(tanh)
TILE_UNARY(asinh)
TILE_UNARY(acosh)
TILE_UNARY(atanh)
TILE_UNARY(erf)
#undef TILE_UNARY

#define TILE_TWO(NAME)                                   \
  template <typename T, int W>                           \
  TILE_INLINE vec<T, W> NAME(vec<T, W> a, vec<T, W> b) { \
    return map_lanes(a, b, [](T x, T y) -> T {           \
      if constexpr (is_same<T, float>) {                 \
        return TILE_MATH(NAME##f)(x, y);                 \
      } else {                                           \
        return TILE_MATH(NAME)(x, y);                    \
      }                                                  \
    });                                                  \
  }
TILE_TWO(pow)
TILE_TWO(atan2)
#undef TILE_TWO

template <typename T, int W>
TILE_INLINE vec<T, W> rsqrt(vec<T, W> a) {
#if defined(__CUDACC_RTC__)
  return map_lanes(a, [](T x) -> T {
    if constexpr (is_same<T, float>) {
      return ::rsqrtf(x);
    } else {
      return ::rsqrt(x);
    }
  });
#else
  return T(1) / sqrt(a);
#endif
}

// a / b for b >= 1; at most 2 units in the last place, zero if b is 2^126 or more.
template <int W>
TILE_INLINE vec<float, W> divide_by_logistic(vec<float, W> a, vec<float, W> b) {
  return map_lanes(a, b, [](float x, float y) { return x * cuda::reciprocal_approx(y); });
}

// 1 + erf(x); error 2^-22. 1 - erf(t) is computed as a power of two, whose exponent is fitted up to t = 5 and decreases
// beyond.
template <int W>
TILE_INLINE vec<float, W> erf_plus_one(vec<float, W> a) {
  return map_lanes(a, [](float x) {
    const float t = __builtin_fabsf(x);
    float p = __builtin_fmaf(t, 3.10812211e-05f, -0.000339985272f);
    p = __builtin_fmaf(t, p, 0.00118450203f);
    p = __builtin_fmaf(t, p, 0.00121448084f);
    p = __builtin_fmaf(t, p, -0.0285886005f);
    p = __builtin_fmaf(t, p, 0.148612231f);
    p = __builtin_fmaf(t, p, 0.918393373f);
    p = __builtin_fmaf(t, p, 1.6279099f);
    const float rest = cuda::exp2_approx(p * -t);
    return x < 0.0f ? rest : 2.0f - rest;
  });
}

// Division by a divisor that several dividends share. The reciprocal is computed once, and the quotient is corrected by
// its remainder, which rounds like a division. If the remainder is not finite, the product is already right. Divisors
// whose reciprocal is not a normal number use an ordinary division.
template <typename T, int W>
struct divisor {
  vec<T, W> b, reciprocal;
  bool plain;

  TILE_INLINE explicit divisor(vec<T, W> by) : b(by), reciprocal(splat<W>(T(1)) / by) {
    constexpr T small = sizeof(T) == 4 ? T(0x1p-100) : T(0x1p-1000);
    const vec<T, W> size = abs(by);
    plain = any(~((size > splat<W>(small)) & (size < splat<W>(T(1) / small))));
  }
  TILE_INLINE vec<T, W> divide(vec<T, W> a) const {
    if (plain) return a / b;
    const vec<T, W> q = a * reciprocal, rest = fma(-q, b, a);
    return select(rest - rest == zero<T, W>(), fma(rest, reciprocal, q), q);
  }
};
// a / b, where b is the same in all lanes and usually for a whole row.
template <typename T, int W>
TILE_INLINE vec<T, W> divide_by(vec<T, W> a, vec<T, W> b) {
  constexpr T small = sizeof(T) == 4 ? T(0x1p-100) : T(0x1p-1000);
  const T size = b[0] < T(0) ? -b[0] : b[0];
  if (!(size > small && size < T(1) / small)) return a / b;
  const vec<T, W> r = splat<W>(T(1) / b[0]), q = a * r, rest = fma(-q, b, a);
  return select(rest - rest == zero<T, W>(), fma(rest, r, q), q);
}

// ---- Indices, 32 or 64 bits wide

template <typename A, typename B>
TILE_INLINE auto larger(A a, B b) {
  return a > b ? a : b;
}
template <typename A, typename B>
TILE_INLINE auto smaller(A a, B b) {
  return a < b ? a : b;
}
template <typename I>
TILE_INLINE I floor_div(I a, int64_t b) {
  return a / I(b) - (a % I(b) < 0);
}
template <typename I>
TILE_INLINE I floor_mod(I a, int64_t b) {
  const I r = a % I(b);
  return r < 0 ? r + I(b) : r;
}
template <typename I>
TILE_INLINE I clamp_index(I a, int64_t lo, int64_t hi) {
  return a < lo ? I(lo) : a > hi ? I(hi) : a;
}
// Mirrors a into [0, n) without repeating the ends.
template <typename I>
TILE_INLINE I reflect_index(I a, int64_t n) {
  const I r = floor_mod(a, 2 * n - 2);
  return r < n ? r : I(2 * n - 2) - r;
}
// A negative index counts from the end. An index that is still outside is clamped, so that nothing outside is read.
template <typename T>
TILE_INLINE int64_t wrap_index(T index, int64_t n) {
  int64_t a = static_cast<int64_t>(index);
  if constexpr (!is_signed<T>) {
    if (index > static_cast<uint64_t>(n - 1)) a = n - 1;
  } else if (a < 0) {
    a += n;
  }
  return clamp_index(a, 0, n - 1);
}

}  // namespace heddle::tile
