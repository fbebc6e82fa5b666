// The pairs of tile/arch/sm80/pairs.h for AMD GPUs, by the packed instructions of two f16.
#pragma once

#include <stdint.h>

#include "tile/arch/sm80/approx.h"
#include "tile/arch/sm80/cvt.h"

namespace heddle::tile::cuda {

typedef _Float16 half_pair __attribute__((ext_vector_type(2)));

__device__ inline half_pair as_halves(uint32_t x) {
  return __builtin_bit_cast(half_pair, x);
}
__device__ inline uint32_t pair_mul(uint32_t x, uint32_t y) {
  return __builtin_bit_cast(uint32_t, as_halves(x) * as_halves(y));
}
__device__ inline uint32_t pair_fma(uint32_t x, uint32_t y, uint32_t z) {
  return __builtin_bit_cast(uint32_t, __builtin_elementwise_fma(as_halves(x), as_halves(y), as_halves(z)));
}
__device__ inline uint32_t bfloat_pair_fma(uint32_t x, uint32_t y, uint32_t z) {
  const auto low = [](uint32_t a) { return __builtin_bit_cast(float, a << 16); };
  const auto high = [](uint32_t a) { return __builtin_bit_cast(float, a & 0xffff0000u); };
  return floats_to_bfloats(__builtin_fmaf(low(x), low(y), low(z)), __builtin_fmaf(high(x), high(y), high(z)));
}
__device__ inline uint32_t pair_max(uint32_t x, uint32_t y) {
  const half_pair a = as_halves(x), b = as_halves(y);
  half_pair r = {};
  for (int i = 0; i < 2; ++i) r[i] = a[i] != a[i] || a[i] > b[i] ? a[i] : b[i];
  return __builtin_bit_cast(uint32_t, r);
}
__device__ inline uint32_t pair_tanh(uint32_t x) {
  const half_pair a = as_halves(x);
  return floats_to_halves(tanh_approx(static_cast<float>(a[0])), tanh_approx(static_cast<float>(a[1])));
}
__device__ inline uint32_t pair_of(float x) {
  return floats_to_halves(x, x);
}

}  // namespace heddle::tile::cuda
