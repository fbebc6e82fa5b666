// Functions of floats whose results are rounded to 16 bits or fewer: a few instructions each, since an epilogue has a
// handful for each element before it takes longer than the product it follows. Errors are stated against the exact
// function; half a unit in the last place of f16 is 2^-12 to 2^-11 of a number. NaN in gives NaN out.
#pragma once

#include "tile/arch/sm80/approx.h"
#include "tile/op/arith.h"

namespace heddle::tile::fast {

// e^x; relative error 2^-21 and |x| 2^-24.
template <int W>
TILE_INLINE vec<float, W> exp(vec<float, W> a) {
  return map_lanes(a, [](float x) { return cuda::exp2_approx(x * 1.44269504f); });
}

// x / y; relative error 2^-22. Zero where |y| is 2^126 or more.
template <int W>
TILE_INLINE vec<float, W> divide(vec<float, W> a, vec<float, W> b) {
  return map_lanes(a, b, [](float x, float y) { return x * cuda::reciprocal_approx(y); });
}

// tanh(x); relative error 2^-11.
template <int W>
TILE_INLINE vec<float, W> tanh(vec<float, W> a) {
  return map_lanes(a, [](float x) { return cuda::tanh_approx(x); });
}

namespace detail {

// 1 / (1 + 2^x), relative error 2^-19; 2^-120 where x is larger than 120. The reciprocal by a linear guess from the
// bits and two steps of Newton: the unit for functions, which e^x keeps busy, does an eighth of an operation a cycle.
TILE_INLINE float logistic2(float x) {
  const float y = 1.0f + cuda::exp2_approx(cuda::min_or_nan(x, 120.0f));
  float r = __uint_as_float(0x7ef311c7u - __float_as_uint(y));
  r *= __builtin_fmaf(-1.00115949f * y, r, 2.00245909f);
  return r * __builtin_fmaf(-y, r, 2.0f);
}

}  // namespace detail

// 1 / (1 + e^-x); relative error 2^-18 and |x| 2^-23.
template <int W>
TILE_INLINE vec<float, W> sigmoid(vec<float, W> a) {
  return map_lanes(a, [](float x) { return detail::logistic2(x * -1.44269504f); });
}

// 1 + tanh(x); relative error 2^-18 and |x| 2^-22.
template <int W>
TILE_INLINE vec<float, W> tanh_plus_one(vec<float, W> a) {
  return map_lanes(a, [](float x) { return 2.0f * detail::logistic2(x * -2.88539008f); });
}

// log(1 + e^x) for x <= 0; relative error 2^-14.
template <int W>
TILE_INLINE vec<float, W> log1p_exp(vec<float, W> a) {
  return map_lanes(a, [](float x) {
    const float t = cuda::exp2_approx(x * 1.44269504f);
    float p = __builtin_fmaf(t, 0.0413498445f, -0.157432555f);
    p = __builtin_fmaf(t, p, 0.306304337f);
    p = __builtin_fmaf(t, p, -0.496978455f);
    return t * __builtin_fmaf(t, p, 0.999943304f);
  });
}

// x (1 + erf(x / sqrt(2))) / 2; error at most |x| 2^-11.3: half a unit in the last place of x in f16. The argument of
// tanh is fitted to erf, the rest of the error is the instruction's.
template <int W>
TILE_INLINE vec<float, W> gelu(vec<float, W> a) {
  return map_lanes(a, [](float x) {
    const float half = 0.5f * x, slope = __builtin_fmaf(x * x, 0.0352820481f, 0.798801437f);
    return __builtin_fmaf(half, cuda::tanh_approx(x * slope), half);
  });
}

// x / (1 + e^-x); error at most |x| 2^-12.
template <int W>
TILE_INLINE vec<float, W> silu(vec<float, W> a) {
  return map_lanes(a, [](float x) {
    const float half = 0.5f * x;
    return __builtin_fmaf(half, cuda::tanh_approx(half), half);
  });
}

// x clamp(slope x + offset, 0, 1)
template <int W>
TILE_INLINE vec<float, W> times_ramp(vec<float, W> a, float slope, float offset) {
  return map_lanes(a, [=](float x) { return x * cuda::fma_saturated(x, slope, offset); });
}

}  // namespace heddle::tile::fast
