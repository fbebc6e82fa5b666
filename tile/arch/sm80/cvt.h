// Conversions between floating-point formats. They round to nearest even unless noted otherwise. A NaN becomes the
// canonical NaN.
#pragma once

#include <stdint.h>

namespace heddle::tile::cuda {

__device__ inline float half_to_float(uint16_t bits) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(bits));
  return y;
}
__device__ inline uint16_t float_to_half(float x) {
  uint16_t y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
__device__ inline uint16_t float_to_bfloat(float x) {
  uint16_t y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
// Rounds to tf32, which has 10 bits of mantissa. Ties round away from zero.
__device__ inline uint32_t float_to_tf32(float x) {
  uint32_t y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return y;
}
// Converts two floats to 16 bits and packs them. `low` is in the low half of the result.
__device__ inline uint32_t floats_to_halves(float low, float high) {
  uint32_t y;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}
__device__ inline uint32_t floats_to_bfloats(float low, float high) {
  uint32_t y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}

// Converts and packs two floats as above, and replaces negative numbers by zero.
__device__ inline uint32_t floats_to_halves_relu(float low, float high) {
  uint32_t y;
  asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}
__device__ inline uint32_t floats_to_bfloats_relu(float low, float high) {
  uint32_t y;
  asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}

// Saturates two integers to the range of T, which is int8_t or uint8_t, and packs them into the low half of a word. The
// low half of `above` becomes the high half of the word.
template <typename T>
__device__ inline uint32_t pack_saturated(int32_t low, int32_t high, uint32_t above) {
  uint32_t y;
  if constexpr (T(-1) < T(0)) {
    asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(y) : "r"(high), "r"(low), "r"(above));
  } else {
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(y) : "r"(high), "r"(low), "r"(above));
  }
  return y;
}

}  // namespace heddle::tile::cuda
