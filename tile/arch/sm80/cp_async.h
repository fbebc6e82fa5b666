// Copies from global to shared memory that no thread waits for, in groups of one thread's own.
#pragma once

#include <stdint.h>

namespace heddle::tile::sm80 {

// Copies `valid` bytes (0 .. Bytes) from `from` and fills what is left of the Bytes at `to` with zeros; nothing is read
// where valid is 0. `to` is a shared address; both are aligned to Bytes: 4, 8 or 16 (the last passes by L1).
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

// The same of 16 bytes that, from sm_90 on, the L2 forgets first.
__device__ inline void copy_async_evict_first(uint32_t to, const void* from) {
#if __CUDA_ARCH__ < 900
  copy_async<16>(to, from, 16);
#else
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "l"(0x12F0000000000000ull)
               : "memory");
#endif
}

// The same of 16 bytes that stay in the L1.
__device__ inline void copy_async_l1_resident(uint32_t to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

// Ends a group: the copies of this thread since the last one, possibly none.
__device__ inline void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Until all but the last Pending groups of this thread are done. Other threads see them after a barrier.
template <int Pending>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

}  // namespace heddle::tile::sm80
