// Functions that compile to approximate hardware instructions. Instructions with .ftz flush denormal arguments and
// results to zero.
#pragma once

#include <stdint.h>

namespace heddle::tile::cuda {

// Computes 2^x with a relative error of 2^-22.
__device__ inline float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// Computes tanh(x) with a relative error of 2^-11.
__device__ inline float tanh_approx(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// Computes 1 / x with a relative error of 2^-23.
__device__ inline float reciprocal_approx(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// Computes x / y with an error of at most 2 units in the last place.
__device__ inline float divide_full(float x, float y) {
  float r;
  asm("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
  return r;
}
// Computes x * y + z, clamped to [0, 1]. NaN becomes 0.
__device__ inline float fma_saturated(float x, float y, float z) {
  float r;
  asm("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(x), "f"(y), "f"(z));
  return r;
}
// Minimum and maximum. The result is NaN if either argument is NaN.
__device__ inline float min_or_nan(float x, float y) {
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
  return r;
}
__device__ inline float max_or_nan(float x, float y) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
  return r;
}

}  // namespace heddle::tile::cuda
