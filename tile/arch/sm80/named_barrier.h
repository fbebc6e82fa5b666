// Barriers of some warps of a block.
#pragma once

#include <stdint.h>

namespace heddle::tile::cuda {

// Barrier Id (1 to 15) of `threads` threads of the block, whole warps: some arrive and go on, the others wait for all,
// at any places of the code. (bar.sync wants one place: synccheck calls others divergent.)
template <int Id>
__device__ inline void named_barrier_arrive(uint32_t threads) {
  asm volatile("barrier.arrive %0, %1;" ::"n"(Id), "r"(threads) : "memory");
}
template <int Id>
__device__ inline void named_barrier_sync(uint32_t threads) {
  asm volatile("barrier.sync %0, %1;" ::"n"(Id), "r"(threads) : "memory");
}

}  // namespace heddle::tile::cuda
