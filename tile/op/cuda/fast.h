// Float functions for results that are rounded to 16 bits or fewer. Each function takes only a few instructions,
// because an epilogue can afford only a handful per element before it takes longer than its product. Errors are
// relative to the exact function. For comparison, half a unit in the last place of an f16 number is 2^-12 to 2^-11 of
// the number. If the argument is NaN, the result is NaN.
#pragma once

#include "tile/arch/sm80/approx.h"
#include "tile/arch/sm80/convert.h"
#include "tile/arch/sm80/pairs.h"
#include "tile/op/arith.h"

namespace heddle::tile::fast {

// e^x. The relative error is at most 2^-21 + |x| 2^-24.
TILE_INLINE float exp(float x) {
  return cuda::exp2_approx(x * 1.44269504f);
}

// tanh(x). The relative error is at most 2^-11.
TILE_INLINE float tanh(float x) {
  return cuda::tanh_approx(x);
}

namespace detail {

// 1 / (1 + 2^x). The relative error is at most 2^-19. For x > 120, the result is 2^-120. The reciprocal starts from a
// linear guess based on the bits and takes two Newton steps. It does not use the special-function unit, which is busy
// with e^x and computes only an eighth of an operation per cycle and lane.
TILE_INLINE float logistic2(float x) {
  const float y = 1.0f + cuda::exp2_approx(cuda::min_or_nan(x, 120.0f));
  float r = __uint_as_float(0x7ef311c7u - __float_as_uint(y));
  r *= __builtin_fmaf(-1.00115949f * y, r, 2.00245909f);
  return r * __builtin_fmaf(-y, r, 2.0f);
}

// log(1 + t) / t for 0 <= t <= 1. The relative error is at most 2^-14.
TILE_INLINE float log1p_by(float t) {
  float p = __builtin_fmaf(t, 0.0413498445f, -0.157432555f);
  p = __builtin_fmaf(t, p, 0.306304337f);
  p = __builtin_fmaf(t, p, -0.496978455f);
  return __builtin_fmaf(t, p, 0.999943304f);
}

}  // namespace detail

// 1 / (1 + e^-x). The relative error is at most 2^-18 + |x| 2^-23.
TILE_INLINE float sigmoid(float x) {
  return detail::logistic2(x * -1.44269504f);
}

// 1 + tanh(x). The relative error is at most 2^-18 + |x| 2^-22.
TILE_INLINE float tanh_plus_one(float x) {
  return 2.0f * detail::logistic2(x * -2.88539008f);
}

// log(1 + e^x) for x <= 0. The relative error is at most 2^-14.
TILE_INLINE float log1p_exp(float x) {
  const float t = exp(x);
  return t * detail::log1p_by(t);
}

// x (1 + erf(x / sqrt(2))) / 2. The error is at most |x| 2^-11.3, which is half a unit in the last place of x in f16.
// The argument of tanh is fitted to erf; the remaining error is due to the tanh instruction.
TILE_INLINE float gelu(float x) {
  const float half = 0.5f * x, slope = __builtin_fmaf(x * x, 0.0352820481f, 0.798801437f);
  return __builtin_fmaf(half, cuda::tanh_approx(x * slope), half);
}

// x / (1 + e^-x). The error is at most |x| 2^-12.
TILE_INLINE float silu(float x) {
  const float half = 0.5f * x;
  return __builtin_fmaf(half, cuda::tanh_approx(half), half);
}

#define TILE_LANES(NAME)                                        \
  template <int W>                                              \
  TILE_INLINE vec<float, W> NAME(vec<float, W> a) {             \
    return map_lanes(a, [](float x) { return fast::NAME(x); }); \
  }
TILE_LANES(exp)
TILE_LANES(tanh)
TILE_LANES(sigmoid)
TILE_LANES(tanh_plus_one)
TILE_LANES(log1p_exp)
TILE_LANES(gelu)
TILE_LANES(silu)
#undef TILE_LANES

// x / y. The relative error is at most 2^-22. The result is zero if |y| >= 2^126.
template <int W>
TILE_INLINE vec<float, W> divide(vec<float, W> a, vec<float, W> b) {
  return map_lanes(a, b, [](float x, float y) { return x * cuda::reciprocal_approx(y); });
}

// x * clamp(slope * x + offset, 0, 1).
template <int W>
TILE_INLINE vec<float, W> times_ramp(vec<float, W> a, float slope, float offset) {
  return map_lanes(a, [=](float x) { return x * cuda::fma_saturated(x, slope, offset); });
}

// ---- Functions that also round two neighbours to their storage type and pack them

template <typename T>
__device__ inline uint32_t pack(float low, float high) {
  return cuda::pack<T>(low, high);
}
// max(x, 0) of both arguments, packed.
template <typename T>
__device__ inline uint32_t pack_relu(float low, float high) {
  return cuda::pack_relu<T>(low, high);
}

// gelu(x) of both arguments, rounded to T and packed. If T is half, the arguments are rounded to f16 first, and the
// remaining computation processes both values at once. The error is then at most |x| 2^-9.8, including rounding.
template <typename T>
__device__ inline uint32_t pack_gelu(float low, float high) {
  if constexpr (is_same<T, half>) {
    const uint32_t x = cuda::pack<half>(low, high);
    const uint32_t slope =
        cuda::pair_fma(cuda::pair_mul(x, x), cuda::pair_of(0.0352820481f), cuda::pair_of(0.798801437f));
    // Bounded from below, since minus infinity times zero would be NaN.
    const uint32_t half_x = cuda::pair_max(cuda::pair_mul(x, cuda::pair_of(0.5f)), cuda::pair_of(-32752.0f));
    return cuda::pair_fma(half_x, cuda::pair_tanh(cuda::pair_mul(x, slope)), half_x);
  } else {
    return cuda::pack<T>(gelu(low), gelu(high));
  }
}

// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|) of both arguments, packed. In f16, the relative error is at most 2^-9.7,
// including rounding.
template <typename T>
__device__ inline uint32_t pack_softplus(float low, float high) {
  const float minus = -1.44269504f;
  const float e_low = cuda::exp2_approx(__builtin_fabsf(low) * minus);
  const float e_high = cuda::exp2_approx(__builtin_fabsf(high) * minus);
  if constexpr (is_same<T, half>) {
    const uint32_t t = cuda::pack<half>(e_low, e_high);
    uint32_t p = cuda::pair_fma(t, cuda::pair_of(0.0413498445f), cuda::pair_of(-0.157432555f));
    p = cuda::pair_fma(t, p, cuda::pair_of(0.306304337f));
    p = cuda::pair_fma(t, p, cuda::pair_of(-0.496978455f));
    p = cuda::pair_fma(t, p, cuda::pair_of(0.999943304f));
    return cuda::pair_fma(t, p, cuda::pack_relu<half>(low, high));
  } else {
    const auto whole = [](float x, float t) {
      return __builtin_fmaf(t, detail::log1p_by(t), cuda::max_or_nan(x, 0.0f));
    };
    return cuda::pack<T>(whole(low, e_low), whole(high, e_high));
  }
}

}  // namespace heddle::tile::fast
