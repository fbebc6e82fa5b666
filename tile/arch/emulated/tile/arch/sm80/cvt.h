// The emulator's replacement for tile/arch/sm80/cvt.h.
#pragma once

#include <stdint.h>

namespace heddle::tile::cuda {

inline float half_to_float(uint16_t bits) {
#if defined(__F16C__)
  typedef short halves __attribute__((vector_size(16)));
  return __builtin_ia32_vcvtph2ps(halves{static_cast<short>(bits)})[0];
#else
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) return __builtin_bit_cast(float, sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  // For normal and subnormal f16 numbers alike, the value is 2^112 times the f32 number with the shifted bits.
  return __builtin_bit_cast(float,
                            sign | __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, magnitude << 13) * 0x1p112f));
#endif
}
inline uint16_t float_to_half(float x) {
  if (x != x) return 0x7fff;
#if defined(__F16C__)
  typedef float floats __attribute__((vector_size(16)));
  return static_cast<uint16_t>(__builtin_ia32_vcvtps2ph(floats{x}, 0)[0]);
#else
  const uint32_t bits = __builtin_bit_cast(uint32_t, x), sign = bits >> 16 & 0x8000;
  const float magnitude = __builtin_fabsf(x);
  if (magnitude >= 65520.f) return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude < 0x1p-14f) {  // adding 0.5 rounds to the last place of subnormal f16 numbers
    return static_cast<uint16_t>(sign | (__builtin_bit_cast(uint32_t, magnitude + 0.5f) - 0x3f000000));
  }
  const uint32_t rounded = (bits & 0x7fffffff) + 0xfff + (bits >> 13 & 1);
  return static_cast<uint16_t>(sign | (rounded - 0x38000000) >> 13);
#endif
}
inline uint16_t float_to_bfloat(float x) {
  if (x != x) return 0x7fff;
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline uint32_t float_to_tf32(float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  if ((bits & 0x7f800000) == 0x7f800000) return x != x ? 0x7fffffff : bits;
  return (bits + 0x1000) & ~0x1fffu;
}
inline uint32_t floats_to_halves(float low, float high) {
  return float_to_half(low) | static_cast<uint32_t>(float_to_half(high)) << 16;
}
inline uint32_t floats_to_bfloats(float low, float high) {
  return float_to_bfloat(low) | static_cast<uint32_t>(float_to_bfloat(high)) << 16;
}

inline uint32_t floats_to_halves_relu(float low, float high) {
  return floats_to_halves(low < 0 ? 0 : low, high < 0 ? 0 : high);
}
inline uint32_t floats_to_bfloats_relu(float low, float high) {
  return floats_to_bfloats(low < 0 ? 0 : low, high < 0 ? 0 : high);
}

template <typename T>
inline uint32_t pack_saturated(int32_t low, int32_t high, uint32_t above) {
  constexpr int32_t kLeast = T(-1) < T(0) ? -128 : 0, kMost = kLeast + 255;
  const auto byte = [](int32_t x) { return static_cast<uint32_t>(x < kLeast ? kLeast : x > kMost ? kMost : x) & 0xff; };
  return byte(low) | byte(high) << 8 | above << 16;
}

}  // namespace heddle::tile::cuda
