// Conversions between storage types and float, and the transposing store of matrix fragments.
#pragma once

#include "tile/core/types.h"

namespace heddle::tile::sm90 {

// Operand types that only the tensor cores read.
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
  } else {
    return static_cast<T>(x);
  }
}

// An accumulator, or what an epilogue made of it, as an element of D.
template <typename T, typename From>
__device__ inline T convert(From x) {
  if constexpr (is_same<T, From>) {
    return x;
  } else {
    return from_float<T>(to_float(x));
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

// Stores four 8x8 matrices of 16-bit elements. Lane l holds elements 2 * (l % 4) and the next of row l / 4 of each;
// lanes 8i .. 8i + 7 give the addresses of the rows (transposed: of the columns) of matrix i.
template <bool Transposed>
__device__ inline void store_matrices(uint32_t address, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  if constexpr (Transposed) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a),
                 "r"(b), "r"(c), "r"(d)
                 : "memory");
  } else {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b),
                 "r"(c), "r"(d)
                 : "memory");
  }
}

}  // namespace heddle::tile::sm90
