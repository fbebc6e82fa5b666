// Element types that only tensor cores read, and conversions between storage types and float.
#pragma once

#include "tile/core/types.h"

namespace heddle::tile::cuda {

struct tf32 {
  float value;
};
struct e4m3 {
  uint8_t bits;
};
struct e5m2 {
  uint8_t bits;
};

__device__ inline float to_float(float x) {
  return x;
}
__device__ inline float to_float(int32_t x) {
  return static_cast<float>(x);
}
__device__ inline float to_float(half x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
__device__ inline float to_float(bfloat x) {
  return __uint_as_float(static_cast<uint32_t>(x.bits) << 16);
}
__device__ inline float to_float(tf32 x) {
  return x.value;
}
// Both are halves with fewer bits of mantissa, e4m3 with an exponent of another bias and without infinities.
__device__ inline float to_float(e5m2 x) {
  return to_float(half{static_cast<uint16_t>(x.bits << 8)});
}
__device__ inline float to_float(e4m3 x) {
  const uint32_t magnitude = x.bits & 0x7fu;
  if (magnitude == 0x7fu) return __uint_as_float(0x7fffffffu);
  return to_float(half{static_cast<uint16_t>((x.bits & 0x80u) << 8 | magnitude << 7)}) * 256.f;
}

template <typename T>
__device__ inline T from_float(float x) {
  if constexpr (is_same<T, half>) {
    half y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
  } else if constexpr (is_same<T, bfloat>) {
    bfloat y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
  } else if constexpr (is_same<T, tf32>) {
    uint32_t y;  // nearest, ties away: what the tensor cores read without it is the number cut off
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
    return {__uint_as_float(y)};
  } else {
    return static_cast<T>(x);
  }
}

// An accumulator, or what an epilogue made of it, as an element of D.
template <typename T, typename From>
__device__ inline T convert(From x) {
  if constexpr (is_same<T, From>) {
    return x;
  } else if constexpr (is_same<T, half> || is_same<T, bfloat> || is_same<T, tf32>) {
    return from_float<T>(to_float(x));
  } else if constexpr (is_class<From>) {
    return static_cast<T>(to_float(x));
  } else {
    return static_cast<T>(x);
  }
}

// Two neighbours in one register, `low` first in memory.
template <typename T>
__device__ inline uint32_t pack(float low, float high) {
  uint32_t y;
  if constexpr (is_same<T, half>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  } else {
    static_assert(is_same<T, bfloat>);
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  }
  return y;
}

}  // namespace heddle::tile::cuda
