// Element types that only tensor cores multiply, and conversions between storage types and float.
#pragma once

#include "tile/arch/sm80/cvt.h"
#include "tile/core/types.h"

namespace heddle::tile::cuda {

struct tf32 {
  float value;
};
// An f32 number that tensor cores multiply as the sum of two tf32 numbers (tile/kernel/cuda/operand/split_tf32.h).
struct tf32x2 {
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
  return half_to_float(x.bits);
}
__device__ inline float to_float(bfloat x) {
  return __uint_as_float(static_cast<uint32_t>(x.bits) << 16);
}
__device__ inline float to_float(tf32 x) {
  return x.value;
}
__device__ inline float to_float(tf32x2 x) {
  return x.value;
}
// e5m2 and e4m3 are converted through f16, of which they are versions with a shorter mantissa. e4m3 also has a
// different exponent bias and no infinities.
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
    return {float_to_half(x)};
  } else if constexpr (is_same<T, bfloat>) {
    return {float_to_bfloat(x)};
  } else if constexpr (is_same<T, tf32>) {
    // Rounds to nearest, ties away from zero. Otherwise the tensor cores would truncate the number.
    return {__uint_as_float(float_to_tf32(x))};
  } else if constexpr (is_same<T, tf32x2>) {
    return {x};
  } else {
    return static_cast<T>(x);
  }
}

// Converts an accumulator or an epilogue's result to an element of D.
template <typename T, typename From>
__device__ inline T convert(From x) {
  if constexpr (is_same<T, From>) {
    return x;
  } else if constexpr (is_same<T, half> || is_same<T, bfloat> || is_same<T, tf32> || is_same<T, tf32x2>) {
    return from_float<T>(to_float(x));
  } else if constexpr (is_class<From>) {
    return static_cast<T>(to_float(x));
  } else {
    return static_cast<T>(x);
  }
}

// Converts two neighbouring numbers to T and packs them into one register. `low` is first in memory.
template <typename T>
__device__ inline uint32_t pack(float low, float high) {
  if constexpr (is_same<T, half>) {
    return floats_to_halves(low, high);
  } else {
    static_assert(is_same<T, bfloat>);
    return floats_to_bfloats(low, high);
  }
}

// pack(max(low, 0), max(high, 0)). NaN stays NaN.
template <typename T>
__device__ inline uint32_t pack_relu(float low, float high) {
  if constexpr (is_same<T, half>) {
    return floats_to_halves_relu(low, high);
  } else {
    static_assert(is_same<T, bfloat>);
    return floats_to_bfloats_relu(low, high);
  }
}

}  // namespace heddle::tile::cuda
