// The loads and stores of tile/arch/sm80/global.h for AMD GPUs.
#pragma once

#include <stdint.h>

namespace heddle::tile::sm80 {

// An atomic load, which reads what other compute units have stored. No instruction stores four words at once for
// others, so kernels that rely on this are not offered.
template <bool Acquires, typename T>
__device__ inline T load_now(const T* from) {
  return __hip_atomic_load(from, Acquires ? __ATOMIC_ACQUIRE : __ATOMIC_RELAXED,
                           Acquires ? __HIP_MEMORY_SCOPE_SYSTEM : __HIP_MEMORY_SCOPE_AGENT);
}

}  // namespace heddle::tile::sm80
