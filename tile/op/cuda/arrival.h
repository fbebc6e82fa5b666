// The last block of several to arrive continues with what they all have stored. No block waits for another.
#pragma once

#include "tile/op/cuda/team.h"

namespace heddle::tile {

// Counts the arrival of a block. All threads of the block must call it. Returns true in the last of `blocks` blocks; it
// can then load what the other blocks stored before they arrived, through pointers that the compiler has not loaded
// from before. The counter must be zero before the first arrival and is zero again after the last one.
TILE_INLINE bool arrives_last(uint32_t* counter, uint32_t blocks) {
  __syncthreads();  // all stores of the block are before the fence of its first thread
  bool is_last = false;
  if (threadIdx.x == 0) {
    __threadfence();
    is_last = atomicAdd(counter, 1u) == blocks - 1;
    if (is_last) atomicExch(counter, 0u);
    __threadfence();
  }
  return __syncthreads_or(is_last);
}

}  // namespace heddle::tile
