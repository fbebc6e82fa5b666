// Words in memory by which blocks wait for each other.
#pragma once

#include <stdint.h>

namespace heddle::tile::sm80 {

// Adds one; what this thread has seen before is seen by those that see the sum.
__device__ inline void add_release(uint32_t* word) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(word), "r"(1u) : "memory");
}
__device__ inline uint32_t load_acquire(const uint32_t* word) {
  uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}

}  // namespace heddle::tile::sm80
