// Elementwise functions for programs of the tile language. Most of them compute lane by lane.
#pragma once

#include "tile/core/rounded.h"
#include "tile/core/special.h"
#include "tile/op/math.h"

namespace heddle::tile {

template <typename T, int W>
TILE_INLINE vec<T, W> round_away(vec<T, W> a) {
  return map_lanes(a, [](T x) -> T { return __builtin_round(x); });
}

// These functions are computed in double and rounded once.
#define TILE_FUNCTION_DOUBLE(NAME, FUNCTION)                                      \
  template <typename T, int W>                                                    \
  TILE_INLINE vec<T, W> NAME(vec<T, W> a) {                                       \
    return map_lanes(a, [](T x) { return static_cast<T>(FUNCTION(double(x))); }); \
  }
TILE_FUNCTION_DOUBLE(lgamma, __builtin_lgamma)
TILE_FUNCTION_DOUBLE(tgamma, __builtin_tgamma)
TILE_FUNCTION_DOUBLE(logb, __builtin_logb)
TILE_FUNCTION_DOUBLE(erfcx, special::erfcx)
TILE_FUNCTION_DOUBLE(erfinv, special::erfinv)
TILE_FUNCTION_DOUBLE(erfcinv, special::erfcinv)
TILE_FUNCTION_DOUBLE(normcdf, special::normcdf)
TILE_FUNCTION_DOUBLE(normcdfinv, special::normcdfinv)
TILE_FUNCTION_DOUBLE(sinpi, special::sinpi)
TILE_FUNCTION_DOUBLE(cospi, special::cospi)
TILE_FUNCTION_DOUBLE(j0, special::j0)
TILE_FUNCTION_DOUBLE(j1, special::j1)
TILE_FUNCTION_DOUBLE(y0, special::y0)
TILE_FUNCTION_DOUBLE(y1, special::y1)
TILE_FUNCTION_DOUBLE(cyl_bessel_i0, special::cyl_bessel_i0)
TILE_FUNCTION_DOUBLE(cyl_bessel_i1, special::cyl_bessel_i1)
#undef TILE_FUNCTION_DOUBLE

#define TILE_FUNCTION_WITH_INTEGER(NAME, EXPRESSION)           \
  template <typename T, int W>                                 \
  TILE_INLINE vec<T, W> NAME(vec<T, W> a, vec<int32_t, W> b) { \
    T r[W];                                                    \
    for (int i = 0; i < W; ++i) {                              \
      const double x = a[i];                                   \
      const int n = b[i];                                      \
      r[i] = static_cast<T>(EXPRESSION);                       \
    }                                                          \
    return of_lanes(r);                                        \
  }
TILE_FUNCTION_WITH_INTEGER(ldexp, __builtin_ldexp(x, n))
TILE_FUNCTION_WITH_INTEGER(jn, special::jn(n, x))
TILE_FUNCTION_WITH_INTEGER(yn, special::yn(n, x))
#undef TILE_FUNCTION_WITH_INTEGER

#define TILE_FUNCTION_ROUNDED(NAME)                                                                 \
  template <rounding To, typename T, int W>                                                         \
  TILE_INLINE vec<T, W> NAME(vec<T, W> a, vec<T, W> b = zero<T, W>(), vec<T, W> c = zero<T, W>()) { \
    T r[W];                                                                                         \
    for (int i = 0; i < W; ++i) r[i] = NAME(To, T(a[i]), T(b[i]), T(c[i]));                         \
    return of_lanes(r);                                                                             \
  }
TILE_FUNCTION_ROUNDED(rounded_add)
TILE_FUNCTION_ROUNDED(rounded_sub)
TILE_FUNCTION_ROUNDED(rounded_mul)
TILE_FUNCTION_ROUNDED(rounded_div)
TILE_FUNCTION_ROUNDED(rounded_rcp)
TILE_FUNCTION_ROUNDED(rounded_sqrt)
TILE_FUNCTION_ROUNDED(rounded_fma)
#undef TILE_FUNCTION_ROUNDED
template <rounding R, typename To, typename T, int W>
TILE_INLINE vec<To, W> rounded_cast(vec<T, W> a) {
  return map_lanes_to<To>(a, [](T x) { return rounded_cast<To>(R, x); });
}

#define TILE_FUNCTION_BINARY(NAME)                                                        \
  template <typename T, int W>                                                            \
  TILE_INLINE vec<T, W> NAME(vec<T, W> a, vec<T, W> b) {                                  \
    if constexpr (is_same<T, float>) {                                                    \
      return map_lanes(a, b, [](float x, float y) { return __builtin_##NAME##f(x, y); }); \
    } else {                                                                              \
      return map_lanes(a, b, [](double x, double y) { return __builtin_##NAME(x, y); });  \
    }                                                                                     \
  }
TILE_FUNCTION_BINARY(hypot)
TILE_FUNCTION_BINARY(nextafter)
TILE_FUNCTION_BINARY(fdim)
TILE_FUNCTION_BINARY(remainder)
#undef TILE_FUNCTION_BINARY

template <typename T, int W>
TILE_INLINE vec<T, W> exp10(vec<T, W> x) {
  return map_lanes(x, [](T v) { return T(__builtin_pow(10.0, double(v))); });
}

}  // namespace heddle::tile
