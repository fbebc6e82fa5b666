// Elementary functions on vectors, for CPUs and for GPUs without a library of their own. For float, they are
// branch-free, and the comment of each function gives its maximum error in ulp, units in the last place. For double,
// they call the library of TILE_MATH lane by lane. A NaN argument gives NaN. Infinities and signed zeros are handled as
// in the C library.
#pragma once

#include "tile/core/elementary.h"
#include "tile/op/arith.h"

namespace heddle::tile {

namespace detail {

// c0 + x * (c1 + x * (c2 + ...))
template <typename V>
TILE_INLINE V poly(V, typename V::element c) {
  return splat<V::width>(c);
}
template <typename V, typename... C>
TILE_INLINE V poly(V x, typename V::element c0, C... rest) {
  return fma(x, poly(x, static_cast<typename V::element>(rest)...), splat<V::width>(c0));
}

// p * 2^n for an integer n in [-300, 300]. Scales in two steps, so that the result may be subnormal or infinite.
template <int W>
TILE_INLINE vec<float, W> scale_by_power(vec<float, W> p, vec<float, W> n) {
#if TILE_AVX512
  if constexpr (W == 16) return {__builtin_ia32_scalefps512_mask(p.v, n.v, p.v, uint16_t(-1), 4)};
#endif
  const vec<int32_t, W> i = convert<int32_t>(n);
  const vec<int32_t, W> half_i = i >> 1;
  const vec<float, W> s1 = bit_cast<float>((half_i + 127) << 23);
  const vec<float, W> s2 = bit_cast<float>((i - half_i + 127) << 23);
  return p * s1 * s2;
}

// Splits x in [-200, 200] into n ln 2 + r, with integral n and |r| <= ln(2) / 2. Returns r.
template <int W>
TILE_INLINE vec<float, W> reduce_ln2(vec<float, W> x, vec<float, W>& n) {
  n = round_even(x * 1.44269504f);
  vec<float, W> r = fma(n, -0x1.62e4p-1f, x);
  return fma(n, -0x1.7f7d1cp-20f, r);
}

// (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2. The relative error of an e^r computed from it is 3e-9.
template <int W>
TILE_INLINE vec<float, W> exp_tail(vec<float, W> r) {
  return poly(r, 0.49999993412517f, 0.16666520107732f, 0.041668394206826f, 0.0083687804192430f, 0.0013814467298142f);
}

// x clamped to [lo, hi]. NaN stays NaN.
template <typename T, int W>
TILE_INLINE vec<T, W> clamp(vec<T, W> x, T lo, T hi) {
  return less_or_second(splat<W>(hi), greater_or_second(splat<W>(lo), x));
}

// Splits a positive normal x into a mantissa in [sqrt(1/2), sqrt(2)), which is returned, and an exponent `e`.
template <int W>
TILE_INLINE vec<float, W> split_exponent(vec<float, W> x, vec<float, W>& e) {
  const vec<int32_t, W> bits = bit_cast<int32_t>(x) - 0x3f3504f3;
  e = convert<float>(bits >> 23);
  return bit_cast<float>((bits & 0x7fffff) + 0x3f3504f3);
}

// log(1 + f) - f for f in [sqrt(1/2) - 1, sqrt(2) - 1].
template <int W>
TILE_INLINE vec<float, W> log_tail(vec<float, W> f) {
  const vec<float, W> f2 = f * f;
  const vec<float, W> p =
      poly(f, 0.333333126041010f, -0.250000095995300f, 0.200021186555103f, -0.166679958436841f, 0.142195524229734f,
           -0.124055891521815f, 0.118881620583474f, -0.116756503139857f, 0.0674663908390498f);
  return fma(f2 * f, p, f2 * -0.5f);
}

}  // namespace detail

#define TILE_LIBM_BOTH(NAME)                                              \
  template <typename T, int W>                                            \
  TILE_INLINE vec<T, W> NAME(vec<T, W> a) {                               \
    if constexpr (is_same<T, float>) {                                    \
      return map_lanes(a, [](float x) { return TILE_MATH(NAME##f)(x); }); \
    } else {                                                              \
      return map_lanes(a, [](double x) { return TILE_MATH(NAME)(x); });   \
    }                                                                     \
  }
TILE_ELEMENTARY_LANES(TILE_LIBM_BOTH)
#undef TILE_LIBM_BOTH

#define TILE_LIBM_DOUBLE(NAME)                                        \
  template <int W>                                                    \
  TILE_INLINE vec<double, W> NAME(vec<double, W> a) {                 \
    return map_lanes(a, [](double x) { return TILE_MATH(NAME)(x); }); \
  }
TILE_ELEMENTARY_VECTORS(TILE_LIBM_DOUBLE)
#undef TILE_LIBM_DOUBLE

template <typename T, int W>
TILE_INLINE vec<T, W> atan2(vec<T, W> a, vec<T, W> b) {
  if constexpr (is_same<T, float>) {
    return map_lanes(a, b, [](float y, float x) { return TILE_MATH(atan2f)(y, x); });
  } else {
    return map_lanes(a, b, [](double y, double x) { return TILE_MATH(atan2)(y, x); });
  }
}

// e^x, 1 ulp.
template <int W>
TILE_INLINE vec<float, W> exp(vec<float, W> x) {
  vec<float, W> n;
  const vec<float, W> r = detail::reduce_ln2(detail::clamp(x, -104.5f, 89.f), n);
  return detail::scale_by_power(fma(r * r, detail::exp_tail(r), r + 1.f), n);
}

// 2^x, 1 ulp.
template <int W>
TILE_INLINE vec<float, W> exp2(vec<float, W> x) {
  const vec<float, W> c = detail::clamp(x, -151.f, 129.f), n = round_even(c), r = (c - n) * 0.693147181f;
  return detail::scale_by_power(fma(r * r, detail::exp_tail(r), r + 1.f), n);
}

// e^x for x <= 0, for sums of exponentials. 1 ulp for x >= -86; 0 for smaller x.
template <int W>
TILE_INLINE vec<float, W> exp_nonpositive(vec<float, W> x) {
  constexpr float least = -86.f, magic = 0x1.8p23f + 127;  // moves the biased exponent of 2^n to the lowest bits
  const vec<float, W> c = detail::greater_or_second(splat<W>(least), x), t = fma(c, 1.44269504f, splat<W>(magic));
  const vec<float, W> n = t - magic;
  vec<float, W> r = fma(n, -0x1.62e4p-1f, c);
  r = fma(n, -0x1.7f7d1cp-20f, r);
  const vec<float, W> power = bit_cast<float>(bit_cast<int32_t>(t) << 23);
  const vec<float, W> y = fma(r * r, detail::exp_tail(r), r + 1.f) * power;
  return select(x < splat<W>(least), zero<float, W>(), y);
}

// e^x - 1, 2 ulp.
template <int W>
TILE_INLINE vec<float, W> expm1(vec<float, W> x) {
  vec<float, W> n;
  const vec<float, W> r = detail::reduce_ln2(detail::clamp(x, -18.f, 89.f), n);
  const vec<float, W> m = fma(r * r, detail::exp_tail(r), r);
  const vec<float, W> half_scale = bit_cast<float>((convert<int32_t>(n) + 126) << 23);  // 2^(n-1), finite for n = 128
  const vec<float, W> y = fma(half_scale, m, half_scale - 0.5f) * 2.f;
  return select(x == zero<float, W>(), x, y);
}

// Natural logarithm, 2 ulp.
template <int W>
TILE_INLINE vec<float, W> log(vec<float, W> x) {
  const auto tiny = x < splat<W>(0x1p-126f);
  vec<float, W> e;
  const vec<float, W> m = detail::split_exponent(select(tiny, x * 0x1p23f, x), e);
  e = select(tiny, e - 23.f, e);
  const vec<float, W> f = m - 1.f;
  // ln 2 is the sum of a large part, which has few bits, and a small part. The product of the large part and e is
  // exact. The product of the small part and e is added to the small terms.
  const vec<float, W> tail = fma(e, -0x1.bd0106p-13f, detail::log_tail(f));
  vec<float, W> y = fma(e, 0x1.63p-1f, f + tail);
  const vec<float, W> inf = splat<W>(__builtin_inff());
  y = select(x == inf, inf, y);
  y = select(x == zero<float, W>(), -inf, y);
  return select(x >= zero<float, W>(), y, splat<W>(__builtin_nanf("")));
}

// Logarithm to base 2, 3 ulp.
template <int W>
TILE_INLINE vec<float, W> log2(vec<float, W> x) {
  return log(x) * 1.44269504f;
}

// log(1 + x), 3 ulp.
template <int W>
TILE_INLINE vec<float, W> log1p(vec<float, W> x) {
  const vec<float, W> u = x + 1.f;
  const vec<float, W> lost = (x - (u - 1.f)) / u;  // effect of the rounding error of 1 + x, to first order
  const vec<float, W> y = log(u) + lost;
  const auto plain = (u == splat<W>(__builtin_inff())) | (u <= zero<float, W>());
  return select(plain, log(u), select(x == zero<float, W>(), x, y));
}

// Hyperbolic tangent, 6 ulp.
template <int W>
TILE_INLINE vec<float, W> tanh(vec<float, W> x) {
  const vec<float, W> c = detail::clamp(x, -9.02f, 9.02f);
  const vec<float, W> t = c * c;
  const vec<float, W> p =
      detail::poly(t, 0.999999993212881f, 0.130831550022575f, 0.00310299928865297f, 1.11442354529e-5f,
                   -2.01838901718304e-8f, 5.25774470057704e-11f, -8.43596540451652e-14f);
  const vec<float, W> q = detail::poly(t, 1.f, 0.464164819612864f, 0.0244913727420591f, 0.000254474823539463f);
  return c * p / q;
}

// Error function, 7 ulp (6 with FMA).
template <int W>
TILE_INLINE vec<float, W> erf(vec<float, W> x) {
  const vec<float, W> c = detail::clamp(x, -3.93f, 3.93f);
  const vec<float, W> t = c * c;
  const vec<float, W> p = detail::poly(t, 1.12837914535031f, 0.190783869740259f, 0.0527902923101320f,
                                       0.00377961161893561f, 0.000284808780115107f, 2.04197185383462e-6f);
  const vec<float, W> q = detail::poly(t, 1.f, 0.502410521774470f, 0.114257539637569f, 0.0149974415017732f,
                                       0.00116521355874947f, 3.80040958133686e-5f);
  return c * p / q;
}

// Complementary error function, 8 ulp. The rounding error of a large x^2 would become a relative error of the factor
// e^(-x^2). So x^2 is the sum of the exact square of the upper bits of x and a small rest.
template <int W>
TILE_INLINE vec<float, W> erfc(vec<float, W> x) {
  const vec<float, W> z = abs(x), t = 1.f / fma(z, splat<W>(0.5f), splat<W>(1.f));
  const vec<float, W> c = detail::clamp(z, 0.f, 11.f), upper = bit_cast<float>(bit_cast<int32_t>(c) & -4096);
  const vec<float, W> p = detail::poly(t, -1.26551223f, 1.00002368f, 0.37409196f, 0.09678418f, -0.18628806f,
                                       0.27886807f, -1.13520398f, 1.48851587f, -0.82215223f, 0.17087277f);
  const vec<float, W> y = t * exp(p - (c - upper) * (c + upper)) * exp(-(upper * upper));
  return select(x < zero<float, W>(), 2.f - y, y);
}

namespace detail {

// Up to this limit of |x|, the argument reduction of sine and cosine is precise enough. For larger |x|, they call the C
// library. Without FMA the limit is lower, since the products of the reduction are rounded.
#if defined(TILE_CUDA) || TILE_AVX2
inline constexpr float kSinLimit = 1e5f;
#else
inline constexpr float kSinLimit = 500.f;
#endif

// sin(x + quadrant * pi / 2) for |x| <= kSinLimit.
template <int W>
TILE_INLINE vec<float, W> sin_quadrant(vec<float, W> x, int32_t quadrant) {
  const vec<float, W> k = round_even(x * 0.636619772f);
  vec<float, W> r = fma(k, -0x1.92p0f, x);
  r = fma(k, -0x1.fb4p-12f, r);
  r = fma(k, -0x1.4442dp-24f, r);
  r = fma(k, -0x1.84698ap-48f, r);
  const vec<float, W> t = r * r;
  const vec<float, W> s =
      fma(r * t, poly(t, -0.166666666407763f, 0.00833332930241868f, -0.000198393114857533f, 2.71811412006074e-6f), r);
  const vec<float, W> c =
      fma(t * t, poly(t, 0.0416666666194536f, -0.00138888834968536f, 2.4799459308696e-5f, -2.72056845274166e-7f),
          fma(t, -0.5f, 1.f));
  const auto sane = abs(x) <= splat<W>(detail::kSinLimit);
  const vec<int32_t, W> q = convert<int32_t>(select(sane, k, zero<float, W>())) + quadrant;
  const vec<float, W> y = select((q & 1) != zero<int32_t, W>(), c, s);
  return bit_cast<float>(bit_cast<int32_t>(y) ^ ((q & 2) << 30));
}

}  // namespace detail

// Sine and cosine, 2 ulp.
template <int W>
TILE_INLINE vec<float, W> sin(vec<float, W> x) {
  vec<float, W> y = detail::sin_quadrant(x, 0);
  if (!all(abs(x) <= splat<W>(detail::kSinLimit))) y = map_lanes(x, [](float v) { return TILE_MATH(sinf)(v); });
  return select(x == zero<float, W>(), x, y);
}
template <int W>
TILE_INLINE vec<float, W> cos(vec<float, W> x) {
  vec<float, W> y = detail::sin_quadrant(x, 1);
  if (!all(abs(x) <= splat<W>(detail::kSinLimit))) y = map_lanes(x, [](float v) { return TILE_MATH(cosf)(v); });
  return y;
}

namespace detail {

// a^b in double, for positive finite a. The error is less than half an ulp of float.
template <int W>
TILE_INLINE vec<double, W> pow_positive(vec<double, W> a, vec<double, W> b) {
  const vec<int64_t, W> bits = bit_cast<int64_t>(a) - int64_t(0x3fe6a09e667f3bcd);
  const vec<double, W> e = convert<double>(bits >> int64_t(52));
  const vec<double, W> m = bit_cast<double>((bits & int64_t(0xfffffffffffff)) + int64_t(0x3fe6a09e667f3bcd));
  const vec<double, W> z = (m - 1.0) / (m + 1.0);
  const vec<double, W> t = z * z;
  const vec<double, W> s = poly(t, 2.0, 2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15);
  const vec<double, W> log2 = fma(z * s, 1.4426950408889634, e);
  const vec<double, W> y = clamp(log2 * b, -1000.0, 1000.0);
  const vec<double, W> n = round_even(y);
  const vec<double, W> r = (y - n) * 0.6931471805599453;
  const vec<double, W> p = poly(r, 1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320);
  const vec<int64_t, W> i = convert<int64_t>(select(is_nan(n), zero<double, W>(), n));
  return p * bit_cast<double>((i + int64_t(1023)) << int64_t(52));
}

}  // namespace detail

// a^b with the special cases of the C library. 1 ulp for float; the C library for double.
template <int W>
TILE_INLINE vec<double, W> pow(vec<double, W> a, vec<double, W> b) {
  return map_lanes(a, b, [](double x, double y) { return TILE_MATH(pow)(x, y); });
}
template <int W>
TILE_INLINE vec<float, W> pow(vec<float, W> a, vec<float, W> b) {
  const vec<float, W> z = zero<float, W>(), one = splat<W>(1.f), inf = splat<W>(__builtin_inff());
  const vec<float, W> m = abs(a);
  const auto ordinary = (m > z) & (m < inf);
  vec<float, W> y = convert<float>(detail::pow_positive(convert<double>(select(ordinary, m, one)), convert<double>(b)));
  // If the base is 0 or infinite, the result is 0 or infinite, depending on the sign of the exponent.
  const auto grows = (m == z) ^ (b > z);
  y = select(ordinary, y, select(grows, inf, z));
  const auto integral = (round_even(b) == b);
  const vec<float, W> half_b = b * 0.5f;
  const auto odd = integral & (round_even(half_b) != half_b);
  y = select(odd, copy_sign(y, a), y);
  y = select((a < z) & ~integral & (m < inf), splat<W>(__builtin_nanf("")), y);
  // If the exponent is infinite, the result depends on whether the magnitude of the base is above or below 1.
  const auto b_inf = abs(b) == inf;
  y = select(b_inf, select(m == one, one, select((m > one) ^ (b < z), inf, z)), y);
  y = select(is_nan(a) | is_nan(b), a + b, y);
  return select((a == one) | (b == z), one, y);
}
template <typename T, int W>
TILE_INLINE vec<T, W> pow(vec<T, W> a, vec<T, W> b) requires(!is_float<T>) {
  return pow_int(a, b);
}

}  // namespace heddle::tile
