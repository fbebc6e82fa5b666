// The barriers of tile/arch/sm80/named_barrier.h, which AMD GPUs do not have.
#pragma once

#include <stdint.h>

namespace heddle::tile::cuda {

template <int Id>
__device__ inline void named_barrier_sync(uint32_t) {
  static_assert(Id < 0, "no barrier for some waves of a block");
}

}  // namespace heddle::tile::cuda
