// CUDA's mathematical functions. The emulator uses functions of the C library for CUDA's approximate functions.
#pragma once

#include "tile/arch/emulated/abi.h"
#include "tile/core/elementary.h"
#include "tile/core/rounded.h"
#include "tile/core/special.h"

// Declares functions of the C library, for double and float. The name without a suffix is overloaded for both types.
#define HEDDLE_C(R, R_FLOAT, NAME, TAKES) \
  extern "C" R NAME(TAKES(double));       \
  extern "C" R_FLOAT NAME##f(TAKES(float));
#define HEDDLE_ONE(T) T
#define HEDDLE_TWO(T) T, T
#define HEDDLE_THREE(T) T, T, T
#define HEDDLE_WITH_INT(T) T, int
#define HEDDLE_INTO_INT(T) T, int*
#define HEDDLE_INTO(T) T, T*
#define HEDDLE_INT_AND(T) int, T
#define HEDDLE_UNARY(NAME)                  \
  HEDDLE_C(double, float, NAME, HEDDLE_ONE) \
  inline float NAME(float x) {              \
    return NAME##f(x);                      \
  }
#define HEDDLE_BINARY(NAME)                 \
  HEDDLE_C(double, float, NAME, HEDDLE_TWO) \
  inline float NAME(float x, float y) {     \
    return NAME##f(x, y);                   \
  }
// clang-format off
TILE_ELEMENTARY(HEDDLE_UNARY)
HEDDLE_UNARY(ceil) HEDDLE_UNARY(fabs) HEDDLE_UNARY(floor) HEDDLE_UNARY(lgamma) HEDDLE_UNARY(logb) HEDDLE_UNARY(nearbyint)
HEDDLE_UNARY(rint) HEDDLE_UNARY(round) HEDDLE_UNARY(sqrt) HEDDLE_UNARY(tgamma) HEDDLE_UNARY(trunc)
HEDDLE_BINARY(atan2) HEDDLE_BINARY(copysign) HEDDLE_BINARY(fdim) HEDDLE_BINARY(fmax) HEDDLE_BINARY(fmin)
HEDDLE_BINARY(fmod) HEDDLE_BINARY(hypot) HEDDLE_BINARY(nextafter) HEDDLE_BINARY(pow) HEDDLE_BINARY(remainder)
HEDDLE_C(double, float, j0, HEDDLE_ONE) HEDDLE_C(double, float, j1, HEDDLE_ONE)
HEDDLE_C(double, float, y0, HEDDLE_ONE) HEDDLE_C(double, float, y1, HEDDLE_ONE)
HEDDLE_C(double, float, jn, HEDDLE_INT_AND) HEDDLE_C(double, float, yn, HEDDLE_INT_AND)
HEDDLE_C(double, float, fma, HEDDLE_THREE) HEDDLE_C(double, float, ldexp, HEDDLE_WITH_INT)
HEDDLE_C(double, float, scalbn, HEDDLE_WITH_INT) HEDDLE_C(double, float, frexp, HEDDLE_INTO_INT)
HEDDLE_C(double, float, modf, HEDDLE_INTO) HEDDLE_C(int, int, ilogb, HEDDLE_ONE)
HEDDLE_C(long, long, lrint, HEDDLE_ONE) HEDDLE_C(long, long, lround, HEDDLE_ONE)
HEDDLE_C(long long, long long, llrint, HEDDLE_ONE)
    // clang-format on
    extern "C" {
  void sincosf(float, float*, float*);
  void sincos(double, double*, double*);
  int abs(int);
  long labs(long);
  long long llabs(long long);
}

// Defines a function of one argument by an expression.
#define HEDDLE_F1(R, NAME, T, EXPRESSION) \
  inline R NAME(T x) {                    \
    return EXPRESSION;                    \
  }
#define HEDDLE_F2(R, NAME, T, U, EXPRESSION) \
  inline R NAME(T x, U y) {                  \
    return EXPRESSION;                       \
  }
#define HEDDLE_F3(NAME, T, EXPRESSION) \
  inline T NAME(T x, T y, T z) {       \
    return EXPRESSION;                 \
  }
HEDDLE_F3(fma, float, fmaf(x, y, z))
HEDDLE_F2(float, ldexp, float, int, ldexpf(x, y))
HEDDLE_F2(float, frexp, float, int*, frexpf(x, y))
HEDDLE_F1(float, abs, float, fabsf(x))
HEDDLE_F1(double, abs, double, fabs(x))
HEDDLE_F1(long, abs, long, labs(x))
HEDDLE_F1(long long, abs, long long, llabs(x))
HEDDLE_F1(long, lrint, float, lrintf(x))

HEDDLE_F1(float, rsqrtf, float, 1.f / sqrtf(x))
HEDDLE_F1(float, rsqrt, float, rsqrtf(x))
HEDDLE_F1(double, rsqrt, double, 1.0 / sqrt(x))
HEDDLE_F1(float, rcbrtf, float, 1.f / cbrtf(x))
HEDDLE_F1(float, exp10f, float, powf(10.f, x))
HEDDLE_F1(double, exp10, double, pow(10.0, x))
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
HEDDLE_F1(bool, isnan, float, x != x)
HEDDLE_F1(bool, isnan, double, x != x)
HEDDLE_F1(bool, isinf, float, __builtin_isinf(x))
HEDDLE_F1(bool, isinf, double, __builtin_isinf(x))
HEDDLE_F1(bool, isfinite, float, __builtin_isfinite(x))
HEDDLE_F1(bool, isfinite, double, __builtin_isfinite(x))
HEDDLE_F1(bool, signbit, float, __builtin_signbit(x))
HEDDLE_F1(bool, signbit, double, __builtin_signbit(x))

#define HEDDLE_EXTREMES(T)                 \
  HEDDLE_F2(T, min, T, T, (x < y ? x : y)) \
  HEDDLE_F2(T, max, T, T, (x > y ? x : y))
HEDDLE_EXTREMES(int)
HEDDLE_EXTREMES(unsigned)
HEDDLE_EXTREMES(long)
HEDDLE_EXTREMES(unsigned long)
HEDDLE_EXTREMES(long long)
HEDDLE_EXTREMES(unsigned long long)
#undef HEDDLE_EXTREMES
HEDDLE_F2(unsigned, min, int, unsigned, min(static_cast<unsigned>(x), y))
HEDDLE_F2(unsigned, max, int, unsigned, max(static_cast<unsigned>(x), y))
HEDDLE_F2(unsigned, min, unsigned, int, min(x, static_cast<unsigned>(y)))
HEDDLE_F2(unsigned, max, unsigned, int, max(x, static_cast<unsigned>(y)))
HEDDLE_F2(float, min, float, float, fminf(x, y))
HEDDLE_F2(float, max, float, float, fmaxf(x, y))
HEDDLE_F2(double, min, double, double, fmin(x, y))
HEDDLE_F2(double, max, double, double, fmax(x, y))

// CUDA intrinsics. On a GPU, they are fast approximations or have an explicit rounding mode.
HEDDLE_F1(float, __expf, float, expf(x))
HEDDLE_F1(float, __exp10f, float, exp10f(x))
HEDDLE_F1(float, __logf, float, logf(x))
HEDDLE_F1(float, __log2f, float, log2f(x))
HEDDLE_F1(float, __log10f, float, log10f(x))
HEDDLE_F1(float, __sinf, float, sinf(x))
HEDDLE_F1(float, __cosf, float, cosf(x))
HEDDLE_F1(float, __tanf, float, tanf(x))
HEDDLE_F1(float, __tanhf, float, tanhf(x))
HEDDLE_F1(float, __saturatef, float, x > 0.f ? (x < 1.f ? x : 1.f) : 0.f)
HEDDLE_F1(float, __frcp_rn, float, 1.f / x)
HEDDLE_F1(float, __fsqrt_rn, float, sqrtf(x))
HEDDLE_F1(float, __frsqrt_rn, float, 1.f / sqrtf(x))
inline void __sincosf(float x, float* s, float* c) {
  sincosf(x, s, c);
}
HEDDLE_F2(float, __powf, float, float, powf(x, y))
HEDDLE_F2(float, __fdividef, float, float, x / y)
HEDDLE_F2(float, __fdiv_rn, float, float, x / y)
HEDDLE_F2(double, __ddiv_rn, double, double, x / y)
HEDDLE_F1(double, __dsqrt_rn, double, sqrt(x))
HEDDLE_F1(double, __drcp_rn, double, 1.0 / x)
HEDDLE_F3(__fmaf_rn, float, fmaf(x, y, z))
HEDDLE_F3(__fma_rn, double, fma(x, y, z))
// Operations that are never contracted to a fused multiply-add.
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

// Operations with a rounding mode other than to nearest.
#define HEDDLE_DIRECTED(NAME, SUFFIX, TO)                                  \
  inline float __f##NAME##_##SUFFIX(float x, float y = 0) {                \
    return heddle::tile::rounded_##NAME(heddle::tile::rounding::TO, x, y); \
  }                                                                        \
  inline double __d##NAME##_##SUFFIX(double x, double y = 0) {             \
    return heddle::tile::rounded_##NAME(heddle::tile::rounding::TO, x, y); \
  }
#define HEDDLE_DIRECTED_ALL(SUFFIX, TO)                                                             \
  HEDDLE_DIRECTED(add, SUFFIX, TO)                                                                  \
  HEDDLE_DIRECTED(sub, SUFFIX, TO)                                                                  \
  HEDDLE_DIRECTED(mul, SUFFIX, TO)                                                                  \
  HEDDLE_DIRECTED(div, SUFFIX, TO)                                                                  \
  HEDDLE_DIRECTED(rcp, SUFFIX, TO)                                                                  \
  HEDDLE_DIRECTED(sqrt, SUFFIX, TO)                                                                 \
  HEDDLE_F3(__fmaf_##SUFFIX, float, heddle::tile::rounded_fma(heddle::tile::rounding::TO, x, y, z)) \
  HEDDLE_F3(__fma_##SUFFIX, double, heddle::tile::rounded_fma(heddle::tile::rounding::TO, x, y, z))
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
#undef HEDDLE_F1
#undef HEDDLE_F2
#undef HEDDLE_F3
#undef HEDDLE_C
#undef HEDDLE_ONE
#undef HEDDLE_TWO
#undef HEDDLE_THREE
#undef HEDDLE_WITH_INT
#undef HEDDLE_INTO_INT
#undef HEDDLE_INTO
#undef HEDDLE_INT_AND
#undef HEDDLE_UNARY
#undef HEDDLE_BINARY
