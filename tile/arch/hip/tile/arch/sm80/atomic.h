// The additions of tile/arch/sm80/atomic.h for AMD GPUs.
#pragma once

#include "tile/core/types.h"

namespace heddle::tile::sm80 {

template <int W, typename T>
__device__ inline void add_at(T* to, const T (&x)[W]) {
#pragma unroll
  for (int i = 0; i < W; ++i) {
    if constexpr (is_float<T>) {
      __hip_atomic_fetch_add(to + i, x[i], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    } else {
      using U = uint_t<sizeof(T)>;
      __hip_atomic_fetch_add(reinterpret_cast<U*>(to + i), static_cast<U>(x[i]), __ATOMIC_RELAXED,
                             __HIP_MEMORY_SCOPE_AGENT);
    }
  }
}

}  // namespace heddle::tile::sm80
