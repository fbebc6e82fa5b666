// Elementary functions on the vectors of a GPU thread. On NVIDIA GPUs, they call the CUDA device library for each lane;
// in float, the error is at most 2 ulp, or 4 ulp for pow. On AMD GPUs, float functions are those of
// tile/op/float_math.h.
#pragma once

#include "tile/arch/sm80/approx.h"
#include "tile/core/elementary.h"
#include "tile/op/arith.h"
#include "tile/op/index.h"

#if defined(TILE_HIP)
#include "tile/op/float_math.h"
#endif

namespace heddle::tile {

#if !defined(TILE_HIP)
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
TILE_ELEMENTARY(TILE_UNARY)
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
#endif

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

// Returns a / b for b >= 1, with an error of at most 2 ulp. Returns zero if b is 2^126 or more.
template <int W>
TILE_INLINE vec<float, W> divide_by_logistic(vec<float, W> a, vec<float, W> b) {
  return map_lanes(a, b, [](float x, float y) { return x * cuda::reciprocal_approx(y); });
}

// Returns 1 + erf(x), with an error of 2^-22. 1 - erf(t) for t = |x| is computed as a power of two. Its exponent is a
// polynomial in t that was fitted up to t = 5 and decreases beyond.
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

}  // namespace heddle::tile
