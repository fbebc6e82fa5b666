// Emulated versions of the functions of tile/arch/sm80/approx.h. Their errors are no larger than those of the hardware.
#pragma once

#include <stdint.h>

namespace heddle::tile::cuda {

inline float exp2_approx(float x) {
  return __builtin_exp2f(x);
}
inline float tanh_approx(float x) {
  return __builtin_tanhf(x) * (1 - 0x1p-12f);
}
inline float reciprocal_approx(float x) {
  return 1.0f / x;
}
inline float divide_full(float x, float y) {
  return x / y;
}
inline float fma_saturated(float x, float y, float z) {
  const float r = __builtin_fmaf(x, y, z);
  return r > 0 ? (r < 1 ? r : 1.0f) : 0.0f;
}
inline float min_or_nan(float x, float y) {
  return x != x || y != y ? __builtin_nanf("") : x < y ? x : y;
}
inline float max_or_nan(float x, float y) {
  return x != x || y != y ? __builtin_nanf("") : x > y ? x : y;
}

}  // namespace heddle::tile::cuda
