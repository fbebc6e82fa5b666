// The functions of tile/arch/sm80/approx.h for AMD GPUs.
#pragma once

#include <stdint.h>

namespace heddle::tile::cuda {

// v_exp_f32: 1 ulp; flushes denormal results.
__device__ inline float exp2_approx(float x) {
  return __builtin_amdgcn_exp2f(x);
}
__device__ inline float reciprocal_approx(float x) {
  return __builtin_amdgcn_rcpf(x);
}
// There is no instruction for tanh: 1 - 2 / (1 + e^2x), and x - x^3 / 3 near 0, where that cancels.
__device__ inline float tanh_approx(float x) {
  const float large = __builtin_fmaf(-2.0f, reciprocal_approx(1.0f + exp2_approx(x * 2.88539008f)), 1.0f);
  const float small = __builtin_fmaf(x * x, x * -0.333333343f, x);
  return __builtin_fabsf(x) < 0.0625f ? small : large;
}
__device__ inline float divide_full(float x, float y) {
  return x / y;
}
__device__ inline float fma_saturated(float x, float y, float z) {
  const float r = __builtin_fmaf(x, y, z);
  return r > 0.0f ? (r < 1.0f ? r : 1.0f) : 0.0f;
}
// The instructions for minimum and maximum return the other argument if one is NaN.
__device__ inline float min_or_nan(float x, float y) {
  const float r = __builtin_fminf(x, y);
  return x != x || y != y ? __builtin_nanf("") : r;
}
__device__ inline float max_or_nan(float x, float y) {
  const float r = __builtin_fmaxf(x, y);
  return x != x || y != y ? __builtin_nanf("") : r;
}

}  // namespace heddle::tile::cuda
