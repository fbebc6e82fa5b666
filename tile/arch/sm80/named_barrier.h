// Barriers for some of a block's warps.
#pragma once

#include <stdint.h>

namespace heddle::tile::cuda {

// Barrier Id (1 to 15) for `threads` threads of the block, in whole warps. Some warps arrive and go on; the others wait
// for all. Calls may be at different places in the code. (bar.sync needs one place: synccheck reports others as
// divergent.)
template <int Id>
__device__ inline void named_barrier_arrive(uint32_t threads) {
  asm volatile("barrier.arrive %0, %1;" ::"n"(Id), "r"(threads) : "memory");
}
template <int Id>
__device__ inline void named_barrier_sync(uint32_t threads) {
  asm volatile("barrier.sync %0, %1;" ::"n"(Id), "r"(threads) : "memory");
}

}  // namespace heddle::tile::cuda
