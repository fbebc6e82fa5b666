// Asynchronous copies from global to shared memory, in groups per thread.
#pragma once

#include <stdint.h>

namespace heddle::tile::sm80 {

// Copies `valid` bytes (0 .. Bytes) from `from` to the shared address `to` and fills the rest of Bytes with zeros. With
// valid = 0, nothing is read. Both addresses are aligned to Bytes, which is 4, 8 or 16; copies of 16 bypass the L1.
template <int Bytes>
__device__ inline void copy_async(uint32_t to, const void* from, uint32_t valid) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16);
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(Bytes), "r"(valid)
                 : "memory");
  }
}

// The same for 16 bytes that the L2 evicts first, from sm_90 on.
__device__ inline void copy_async_evict_first(uint32_t to, const void* from) {
#if __CUDA_ARCH__ < 900
  copy_async<16>(to, from, 16);
#else
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "l"(0x12F0000000000000ull)
               : "memory");
#endif
}

// The same for 16 bytes that stay in the L1.
__device__ inline void copy_async_l1_resident(uint32_t to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

// Ends a group, which holds this thread's copies since the last one, possibly none.
__device__ inline void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits until all but the last Pending groups of this thread are done. Other threads see the data after a barrier.
template <int Pending>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

}  // namespace heddle::tile::sm80
