// Barriers for a subset of a block's warps.
#pragma once

#include <stdint.h>

namespace heddle::tile::cuda {

// Barrier Id (1 to 15) for `threads` threads of the block, which form whole warps. Warps that call
// named_barrier_arrive() continue immediately. Warps that call named_barrier_sync() wait until all `threads` threads
// have called one of the two functions. The calls may be at different places in the code. (bar.sync would require a
// single place: synccheck reports several places as divergence.)
template <int Id>
__device__ inline void named_barrier_arrive(uint32_t threads) {
  asm volatile("barrier.arrive %0, %1;" ::"n"(Id), "r"(threads) : "memory");
}
template <int Id>
__device__ inline void named_barrier_sync(uint32_t threads) {
  asm volatile("barrier.sync %0, %1;" ::"n"(Id), "r"(threads) : "memory");
}

}  // namespace heddle::tile::cuda
