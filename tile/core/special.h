// Functions that the CUDA library has and the C library lacks. All are computed in double; results for float are
// rounded from double. Used by CPUs, the emulated GPU and the interpreter.
#pragma once

#if !defined(__CUDACC_RTC__) && !defined(__NVCC__)  // CUDA has these functions

namespace heddle::tile::special {

// The Bessel functions of the C library. They are declared here because including the library's header would declare
// further names. They are not called as builtins because some compilers lack these builtins.
double j0(double) __asm__("j0");
double j1(double) __asm__("j1");
double y0(double) __asm__("y0");
double y1(double) __asm__("y1");
double jn(int, double) __asm__("jn");
double yn(int, double) __asm__("yn");

namespace detail {

inline constexpr double kPi = 0x1.921fb54442d18p+1, kTwoBySqrtPi = 0x1.20dd750429b6dp+0;
// The square root of 1/2 and its rounding error.
inline constexpr double kHalfSqrt = 0x1.6a09e667f3bcdp-1, kHalfSqrtRest = -0x1.bdd3413b26456p-55;
inline double infinity() {
  return __builtin_inf();
}
inline double nan() {
  return __builtin_nan("");
}

// Returns e^(x^2). The square is represented exactly as the sum of two doubles.
inline double exp_of_square(double x) {
  const double high = x * x, low = __builtin_fma(x, x, -high);
  return __builtin_exp(high) * (1 + low);
}

// Return the sine and the cosine of pi * x, for |x| <= 1/4.
inline double sine(double x) {
  return __builtin_sin(kPi * x);
}
inline double cosine(double x) {
  return __builtin_cos(kPi * x);
}

// Returns the Bessel function I0 (order 0) or I1 (order 1) of x by its series in powers of x / 2. All terms are
// positive.
inline double bessel_series(double x, int order) {
  const double quarter = x * x / 4;
  double term = order == 0 ? 1 : x / 2, sum = term;
  for (int k = 1; term > sum * 0x1p-56; ++k) {
    term *= quarter / (static_cast<double>(k) * (k + order));
    sum += term;
  }
  return sum;
}
// Returns I0 or I1 for large x by the asymptotic expansion of e^-x sqrt(2 pi x) I(x). The factor e^x is applied as
// e^(x/2) twice, because e^x could overflow.
inline double bessel_at_large(double x, int order) {
  double term = 1, sum = 1;
  for (int k = 1; k < 30 && __builtin_fabs(term) > 0x1p-56; ++k) {
    const double odd = 2 * k - 1;
    term *= (odd * odd - 4 * order) / (8 * x * k);
    sum += term;
  }
  const double half = __builtin_exp(x / 2);
  return sum / __builtin_sqrt(2 * kPi * x) * half * half;
}

}  // namespace detail

// Returns sin(pi x). The argument is reduced exactly.
inline double sinpi(double x) {
  const double n = __builtin_rint(2 * x), t = x - n / 2;
  if (!(__builtin_fabs(x) < detail::infinity())) return detail::nan();
  if (t == 0 && __builtin_fmod(n, 2) == 0) return __builtin_copysign(0.0, x);
  const int quadrant = static_cast<int>(__builtin_fmod(n, 4)) & 3;
  const double r = quadrant % 2 == 0 ? detail::sine(t) : detail::cosine(t);
  return quadrant < 2 ? r : -r;
}
inline double cospi(double x) {
  const double n = __builtin_rint(2 * x), t = x - n / 2;
  if (!(__builtin_fabs(x) < detail::infinity())) return detail::nan();
  const int quadrant = static_cast<int>(__builtin_fmod(n, 4)) & 3;
  if (t == 0 && quadrant % 2 == 1) return 0;
  const double r = quadrant % 2 == 0 ? detail::cosine(t) : detail::sine(t);
  return quadrant == 1 || quadrant == 2 ? -r : r;
}

// Returns e^(x^2) erfc(x).
inline double erfcx(double x) {
  if (x < 10) return x < -27 ? detail::infinity() : detail::exp_of_square(x) * __builtin_erfc(x);
  double term = 1, sum = 1;
  for (int k = 1; k < 30 && __builtin_fabs(term) > 0x1p-56; ++k) {
    term *= -(2 * k - 1) / (2 * x) / x;
    sum += term;
  }
  return x != x ? x : sum * (detail::kTwoBySqrtPi / 2) / x;
}

inline double erfinv(double x);
// For y < 1/2, applies Newton's method to log(erfc(z)), which is closer to linear than erfc(z).
inline double erfcinv(double y) {
  if (!(y > 0 && y < 2)) return y == 0 ? detail::infinity() : y == 2 ? -detail::infinity() : detail::nan();
  if (y > 1) return -erfcinv(2 - y);
  if (y >= 0.5) return erfinv(1 - y);
  const double log = __builtin_log(y);
  double z = __builtin_sqrt(-log);
  for (int i = 0; i < 12; ++i) {
    const double scaled = erfcx(z);  // log erfc(z) = log(scaled) - z^2
    const double step = (__builtin_log(scaled) - z * z - log) * scaled / detail::kTwoBySqrtPi;
    z += step;
    if (__builtin_fabs(step) < 0x1p-50 * z) break;
  }
  return z;
}
inline double erfinv(double x) {
  const double a = __builtin_fabs(x);
  if (!(a <= 1)) return detail::nan();
  if (a > 0.5) return __builtin_copysign(erfcinv(1 - a), x);
  double z = x / detail::kTwoBySqrtPi * (1 + detail::kPi / 12 * x * x);
  for (int i = 0; i < 4; ++i) {
    const double step = (x - __builtin_erf(z)) / detail::kTwoBySqrtPi * detail::exp_of_square(z);
    z += step / (1 - z * step);  // Halley's method
  }
  return z;
}

inline double normcdf(double x) {
  // The argument t of erfc, and its rounding error, to which the tail is sensitive.
  const double t = -x * detail::kHalfSqrt;
  const double rest = __builtin_fma(-x, detail::kHalfSqrt, -t) - x * detail::kHalfSqrtRest;
  if (!(__builtin_fabs(t) < 28)) return x != x ? x : x < 0 ? 0.0 : 1.0;
  return 0.5 * (__builtin_erfc(t) - rest * detail::kTwoBySqrtPi / detail::exp_of_square(t));
}
inline double normcdfinv(double p) {
  return -2 * detail::kHalfSqrt * erfcinv(2 * p);
}

inline double cyl_bessel_i0(double x) {
  const double a = __builtin_fabs(x);
  if (a < 30) return detail::bessel_series(a, 0);
  return a < 800 ? detail::bessel_at_large(a, 0) : a + detail::infinity();
}
inline double cyl_bessel_i1(double x) {
  const double a = __builtin_fabs(x);
  const double r = a < 30    ? detail::bessel_series(a, 1)
                   : a < 800 ? detail::bessel_at_large(a, 1)
                             : a + detail::infinity();
  return __builtin_copysign(r, x);
}

}  // namespace heddle::tile::special

#endif
