// Additions to global memory that return nothing. Their order is not defined.
#pragma once

#include "tile/core/types.h"

namespace heddle::tile::sm80 {

// Adds W neighbouring numbers. The address is a multiple of their size. From sm_90 on, two or four floats are one
// operation.
template <int W>
__device__ inline void add_at(float* to, const float (&x)[W]) {
#if __CUDA_ARCH__ >= 900
  if constexpr (W % 4 == 0) {
    for (int i = 0; i < W; i += 4) {
      asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to + i), "f"(x[i]), "f"(x[i + 1]),
                   "f"(x[i + 2]), "f"(x[i + 3])
                   : "memory");
    }
    return;
  } else if constexpr (W == 2) {
    asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %2};" ::"l"(to), "f"(x[0]), "f"(x[1]) : "memory");
    return;
  }
#endif
#pragma unroll
  for (int i = 0; i < W; ++i) atomicAdd(to + i, x[i]);
}
// Integers wrap around, so signed ones are added as unsigned ones.
template <int W, typename T>
__device__ inline void add_at(T* to, const T (&x)[W]) {
#pragma unroll
  for (int i = 0; i < W; ++i) {
    if constexpr (is_float<T>) {
      atomicAdd(to + i, x[i]);
    } else if constexpr (sizeof(T) == 8) {
      atomicAdd(reinterpret_cast<unsigned long long*>(to + i), static_cast<unsigned long long>(x[i]));
    } else {
      atomicAdd(reinterpret_cast<unsigned*>(to + i), static_cast<unsigned>(x[i]));
    }
  }
}

}  // namespace heddle::tile::sm80
