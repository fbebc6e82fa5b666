// The conversions of tile/arch/sm80/cvt.h for AMD GPUs.
#pragma once

#include <stdint.h>

namespace heddle::tile::cuda {

__device__ inline float half_to_float(uint16_t bits) {
  return static_cast<float>(__builtin_bit_cast(_Float16, bits));
}
__device__ inline uint16_t float_to_half(float x) {
  return x != x ? uint16_t(0x7fff) : __builtin_bit_cast(uint16_t, static_cast<_Float16>(x));
}
// No conversion instruction before gfx950.
__device__ inline uint16_t float_to_bfloat(float x) {
  if (x != x) return 0x7fff;
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
__device__ inline uint32_t float_to_tf32(float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  if ((bits & 0x7f800000) == 0x7f800000) return x != x ? 0x7fffffff : bits;
  return (bits + 0x1000) & ~0x1fffu;
}
__device__ inline uint32_t floats_to_halves(float low, float high) {
  return float_to_half(low) | static_cast<uint32_t>(float_to_half(high)) << 16;
}
__device__ inline uint32_t floats_to_bfloats(float low, float high) {
  return float_to_bfloat(low) | static_cast<uint32_t>(float_to_bfloat(high)) << 16;
}
__device__ inline uint32_t floats_to_halves_relu(float low, float high) {
  return floats_to_halves(low < 0 ? 0 : low, high < 0 ? 0 : high);
}
__device__ inline uint32_t floats_to_bfloats_relu(float low, float high) {
  return floats_to_bfloats(low < 0 ? 0 : low, high < 0 ? 0 : high);
}

}  // namespace heddle::tile::cuda
