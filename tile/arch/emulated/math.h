// CUDA's mathematical functions. Here, approximate functions are those of the C library.
#pragma once

#include "tile/arch/emulated/abi.h"
#include "tile/core/rounded.h"
#include "tile/core/special.h"

extern "C" {
float acosf(float);
double acos(double);
float acoshf(float);
double acosh(double);
float asinf(float);
double asin(double);
float asinhf(float);
double asinh(double);
float atanf(float);
double atan(double);
float atanhf(float);
double atanh(double);
float cbrtf(float);
double cbrt(double);
float ceilf(float);
double ceil(double);
float cosf(float);
double cos(double);
float coshf(float);
double cosh(double);
float erff(float);
double erf(double);
float erfcf(float);
double erfc(double);
float expf(float);
double exp(double);
float exp2f(float);
double exp2(double);
float expm1f(float);
double expm1(double);
float fabsf(float);
double fabs(double);
float floorf(float);
double floor(double);
float j0f(float);
double j0(double);
float j1f(float);
double j1(double);
float jnf(int, float);
double jn(int, double);
float y0f(float);
double y0(double);
float y1f(float);
double y1(double);
float ynf(int, float);
double yn(int, double);
float lgammaf(float);
double lgamma(double);
float logf(float);
double log(double);
float log10f(float);
double log10(double);
float log1pf(float);
double log1p(double);
float log2f(float);
double log2(double);
float logbf(float);
double logb(double);
float nearbyintf(float);
double nearbyint(double);
float rintf(float);
double rint(double);
float roundf(float);
double round(double);
float sinf(float);
double sin(double);
float sinhf(float);
double sinh(double);
float sqrtf(float);
double sqrt(double);
float tanf(float);
double tan(double);
float tanhf(float);
double tanh(double);
float tgammaf(float);
double tgamma(double);
float truncf(float);
double trunc(double);
float atan2f(float, float);
double atan2(double, double);
float copysignf(float, float);
double copysign(double, double);
float fdimf(float, float);
double fdim(double, double);
float fmaxf(float, float);
double fmax(double, double);
float fminf(float, float);
double fmin(double, double);
float fmodf(float, float);
double fmod(double, double);
float hypotf(float, float);
double hypot(double, double);
float nextafterf(float, float);
double nextafter(double, double);
float powf(float, float);
double pow(double, double);
float remainderf(float, float);
double remainder(double, double);
float fmaf(float, float, float);
double fma(double, double, double);
float ldexpf(float, int);
double ldexp(double, int);
float frexpf(float, int*);
double frexp(double, int*);
float modff(float, float*);
double modf(double, double*);
float scalbnf(float, int);
double scalbn(double, int);
void sincosf(float, float*, float*);
void sincos(double, double*, double*);
int ilogbf(float);
int ilogb(double);
int abs(int);
long labs(long);
long long llabs(long long);
long lrintf(float);
long lrint(double);
long lroundf(float);
long lround(double);
long long llrintf(float);
long long llrint(double);
}

// The names without suffix for float.
inline float acos(float x) {
  return acosf(x);
}
inline float acosh(float x) {
  return acoshf(x);
}
inline float asin(float x) {
  return asinf(x);
}
inline float asinh(float x) {
  return asinhf(x);
}
inline float atan(float x) {
  return atanf(x);
}
inline float atanh(float x) {
  return atanhf(x);
}
inline float cbrt(float x) {
  return cbrtf(x);
}
inline float ceil(float x) {
  return ceilf(x);
}
inline float cos(float x) {
  return cosf(x);
}
inline float cosh(float x) {
  return coshf(x);
}
inline float erf(float x) {
  return erff(x);
}
inline float erfc(float x) {
  return erfcf(x);
}
inline float exp(float x) {
  return expf(x);
}
inline float exp2(float x) {
  return exp2f(x);
}
inline float expm1(float x) {
  return expm1f(x);
}
inline float fabs(float x) {
  return fabsf(x);
}
inline float floor(float x) {
  return floorf(x);
}
inline float lgamma(float x) {
  return lgammaf(x);
}
inline float log(float x) {
  return logf(x);
}
inline float log10(float x) {
  return log10f(x);
}
inline float log1p(float x) {
  return log1pf(x);
}
inline float log2(float x) {
  return log2f(x);
}
inline float logb(float x) {
  return logbf(x);
}
inline float nearbyint(float x) {
  return nearbyintf(x);
}
inline float rint(float x) {
  return rintf(x);
}
inline float round(float x) {
  return roundf(x);
}
inline float sin(float x) {
  return sinf(x);
}
inline float sinh(float x) {
  return sinhf(x);
}
inline float sqrt(float x) {
  return sqrtf(x);
}
inline float tan(float x) {
  return tanf(x);
}
inline float tanh(float x) {
  return tanhf(x);
}
inline float tgamma(float x) {
  return tgammaf(x);
}
inline float trunc(float x) {
  return truncf(x);
}
inline float atan2(float x, float y) {
  return atan2f(x, y);
}
inline float copysign(float x, float y) {
  return copysignf(x, y);
}
inline float fdim(float x, float y) {
  return fdimf(x, y);
}
inline float fmax(float x, float y) {
  return fmaxf(x, y);
}
inline float fmin(float x, float y) {
  return fminf(x, y);
}
inline float fmod(float x, float y) {
  return fmodf(x, y);
}
inline float hypot(float x, float y) {
  return hypotf(x, y);
}
inline float nextafter(float x, float y) {
  return nextafterf(x, y);
}
inline float pow(float x, float y) {
  return powf(x, y);
}
inline float remainder(float x, float y) {
  return remainderf(x, y);
}
inline float fma(float x, float y, float z) {
  return fmaf(x, y, z);
}
inline float ldexp(float x, int n) {
  return ldexpf(x, n);
}
inline float frexp(float x, int* n) {
  return frexpf(x, n);
}
inline float abs(float x) {
  return fabsf(x);
}
inline double abs(double x) {
  return fabs(x);
}
inline long abs(long x) {
  return labs(x);
}
inline long long abs(long long x) {
  return llabs(x);
}
inline long lrint(float x) {
  return lrintf(x);
}

inline float rsqrtf(float x) {
  return 1.f / sqrtf(x);
}
inline float rsqrt(float x) {
  return rsqrtf(x);
}
inline double rsqrt(double x) {
  return 1.0 / sqrt(x);
}
inline float rcbrtf(float x) {
  return 1.f / cbrtf(x);
}
inline float exp10f(float x) {
  return powf(10.f, x);
}
inline double exp10(double x) {
  return pow(10.0, x);
}
#define HEDDLE_SPECIAL(NAME)                                   \
  inline float NAME##f(float x) {                              \
    return static_cast<float>(heddle::tile::special::NAME(x)); \
  }                                                            \
  inline double NAME(double x) {                               \
    return heddle::tile::special::NAME(x);                     \
  }
HEDDLE_SPECIAL(sinpi)
HEDDLE_SPECIAL(cospi)
HEDDLE_SPECIAL(erfinv)
HEDDLE_SPECIAL(erfcinv)
HEDDLE_SPECIAL(erfcx)
HEDDLE_SPECIAL(normcdf)
HEDDLE_SPECIAL(normcdfinv)
HEDDLE_SPECIAL(cyl_bessel_i0)
HEDDLE_SPECIAL(cyl_bessel_i1)
#undef HEDDLE_SPECIAL
inline bool isnan(float x) {
  return x != x;
}
inline bool isnan(double x) {
  return x != x;
}
inline bool isinf(float x) {
  return __builtin_isinf(x);
}
inline bool isinf(double x) {
  return __builtin_isinf(x);
}
inline bool isfinite(float x) {
  return __builtin_isfinite(x);
}
inline bool isfinite(double x) {
  return __builtin_isfinite(x);
}
inline bool signbit(float x) {
  return __builtin_signbit(x);
}
inline bool signbit(double x) {
  return __builtin_signbit(x);
}

inline int min(int x, int y) {
  return x < y ? x : y;
}
inline int max(int x, int y) {
  return x > y ? x : y;
}
inline unsigned min(unsigned x, unsigned y) {
  return x < y ? x : y;
}
inline unsigned max(unsigned x, unsigned y) {
  return x > y ? x : y;
}
inline long min(long x, long y) {
  return x < y ? x : y;
}
inline long max(long x, long y) {
  return x > y ? x : y;
}
inline unsigned long min(unsigned long x, unsigned long y) {
  return x < y ? x : y;
}
inline unsigned long max(unsigned long x, unsigned long y) {
  return x > y ? x : y;
}
inline long long min(long long x, long long y) {
  return x < y ? x : y;
}
inline long long max(long long x, long long y) {
  return x > y ? x : y;
}
inline unsigned long long min(unsigned long long x, unsigned long long y) {
  return x < y ? x : y;
}
inline unsigned long long max(unsigned long long x, unsigned long long y) {
  return x > y ? x : y;
}
inline unsigned min(int x, unsigned y) {
  return min(static_cast<unsigned>(x), static_cast<unsigned>(y));
}
inline unsigned max(int x, unsigned y) {
  return max(static_cast<unsigned>(x), static_cast<unsigned>(y));
}
inline unsigned min(unsigned x, int y) {
  return min(static_cast<unsigned>(x), static_cast<unsigned>(y));
}
inline unsigned max(unsigned x, int y) {
  return max(static_cast<unsigned>(x), static_cast<unsigned>(y));
}
inline float min(float x, float y) {
  return fminf(x, y);
}
inline double min(double x, double y) {
  return fmin(x, y);
}
inline float max(float x, float y) {
  return fmaxf(x, y);
}
inline double max(double x, double y) {
  return fmax(x, y);
}

// Fast or explicitly rounded forms.
inline float __expf(float x) {
  return expf(x);
}
inline float __exp10f(float x) {
  return exp10f(x);
}
inline float __logf(float x) {
  return logf(x);
}
inline float __log2f(float x) {
  return log2f(x);
}
inline float __log10f(float x) {
  return log10f(x);
}
inline float __sinf(float x) {
  return sinf(x);
}
inline float __cosf(float x) {
  return cosf(x);
}
inline float __tanf(float x) {
  return tanf(x);
}
inline float __tanhf(float x) {
  return tanhf(x);
}
inline float __saturatef(float x) {
  return x > 0.f ? (x < 1.f ? x : 1.f) : 0.f;
}
inline float __frcp_rn(float x) {
  return 1.f / x;
}
inline float __fsqrt_rn(float x) {
  return sqrtf(x);
}
inline float __frsqrt_rn(float x) {
  return 1.f / sqrtf(x);
}
inline void __sincosf(float x, float* s, float* c) {
  sincosf(x, s, c);
}
inline float __powf(float x, float y) {
  return powf(x, y);
}
inline float __fdividef(float x, float y) {
  return x / y;
}
inline float __fdiv_rn(float x, float y) {
  return x / y;
}
inline double __ddiv_rn(double x, double y) {
  return x / y;
}
inline double __dsqrt_rn(double x) {
  return sqrt(x);
}
inline double __drcp_rn(double x) {
  return 1.0 / x;
}
inline float __fmaf_rn(float x, float y, float z) {
  return fmaf(x, y, z);
}
inline double __fma_rn(double x, double y, double z) {
  return fma(x, y, z);
}
// Never contracted to a fused multiply-add.
#define HEDDLE_ROUNDED(NAME, T, OPERATION)            \
  inline __attribute__((noinline)) T NAME(T x, T y) { \
    return x OPERATION y;                             \
  }
HEDDLE_ROUNDED(__fadd_rn, float, +)
HEDDLE_ROUNDED(__fsub_rn, float, -)
HEDDLE_ROUNDED(__fmul_rn, float, *)
HEDDLE_ROUNDED(__dadd_rn, double, +)
HEDDLE_ROUNDED(__dsub_rn, double, -)
HEDDLE_ROUNDED(__dmul_rn, double, *)
#undef HEDDLE_ROUNDED

// Rounding modes other than to nearest.
#define HEDDLE_DIRECTED(NAME, SUFFIX, TO)                                  \
  inline float __f##NAME##_##SUFFIX(float x, float y = 0) {                \
    return heddle::tile::rounded_##NAME(heddle::tile::rounding::TO, x, y); \
  }                                                                        \
  inline double __d##NAME##_##SUFFIX(double x, double y = 0) {             \
    return heddle::tile::rounded_##NAME(heddle::tile::rounding::TO, x, y); \
  }
#define HEDDLE_DIRECTED_ALL(SUFFIX, TO)                                    \
  HEDDLE_DIRECTED(add, SUFFIX, TO)                                         \
  HEDDLE_DIRECTED(sub, SUFFIX, TO)                                         \
  HEDDLE_DIRECTED(mul, SUFFIX, TO)                                         \
  HEDDLE_DIRECTED(div, SUFFIX, TO)                                         \
  HEDDLE_DIRECTED(rcp, SUFFIX, TO)                                         \
  HEDDLE_DIRECTED(sqrt, SUFFIX, TO)                                        \
  inline float __fmaf_##SUFFIX(float x, float y, float z) {                \
    return heddle::tile::rounded_fma(heddle::tile::rounding::TO, x, y, z); \
  }                                                                        \
  inline double __fma_##SUFFIX(double x, double y, double z) {             \
    return heddle::tile::rounded_fma(heddle::tile::rounding::TO, x, y, z); \
  }
HEDDLE_DIRECTED_ALL(rz, rtz)
HEDDLE_DIRECTED_ALL(rd, rtn)
HEDDLE_DIRECTED_ALL(ru, rtp)
#undef HEDDLE_DIRECTED_ALL
#undef HEDDLE_DIRECTED

#define HEDDLE_CAST(FROM, TYPE, TO, SUFFIX, MODE)                           \
  inline TO __##FROM##2##TO##_##SUFFIX(TYPE x) {                            \
    return heddle::tile::rounded_cast<TO>(heddle::tile::rounding::MODE, x); \
  }
#define HEDDLE_CASTS(FROM, TYPE, TO)    \
  HEDDLE_CAST(FROM, TYPE, TO, rn, rtne) \
  HEDDLE_CAST(FROM, TYPE, TO, rz, rtz)  \
  HEDDLE_CAST(FROM, TYPE, TO, rd, rtn)  \
  HEDDLE_CAST(FROM, TYPE, TO, ru, rtp)
HEDDLE_CASTS(double, double, float)
HEDDLE_CASTS(int, int, float)
HEDDLE_CASTS(uint, unsigned, float)
HEDDLE_CASTS(ll, long long, float)
HEDDLE_CASTS(ull, unsigned long long, float)
HEDDLE_CASTS(ll, long long, double)
HEDDLE_CASTS(ull, unsigned long long, double)
HEDDLE_CAST(int, int, double, rn, rtne)
HEDDLE_CAST(uint, unsigned, double, rn, rtne)
#undef HEDDLE_CASTS
#undef HEDDLE_CAST
