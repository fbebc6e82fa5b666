// Asynchronous copies from global to shared memory (cp.async). Each thread organises its copies in groups.
#pragma once

#include <stdint.h>

namespace heddle::tile::sm80 {

// True if copies need no registers and go on while their thread computes.
inline constexpr bool kCopiesAsync = true;

// Copies `valid` bytes (0 to Bytes) from `from` to the shared-memory address `to`, and fills the rest of the Bytes
// bytes with zeros. If `valid` is 0, nothing is read. Bytes is 4, 8 or 16; both addresses must be aligned to Bytes.
// Copies of 16 bytes bypass the L1.
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

// Like copy_async(), but only if `wanted`. The instruction is predicated, so there is no branch.
template <int Bytes>
__device__ inline void copy_async_if(bool wanted, uint32_t to, const void* from, uint32_t valid) {
  static_assert(Bytes == 16);
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %3, 0;\n"
      "@p cp.async.cg.shared.global [%0], [%1], 16, %2;}" ::"r"(to),
      "l"(from), "r"(valid), "r"(static_cast<uint32_t>(wanted))
      : "memory");
}

// Copies 16 bytes. On sm_90 and later, the source's cache lines are the first that the L2 evicts.
__device__ inline void copy_async_evict_first(uint32_t to, const void* from) {
#if __CUDA_ARCH__ < 900
  copy_async<16>(to, from, 16);
#else
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "l"(0x12F0000000000000ull)
               : "memory");
#endif
}

// Copies 16 bytes and keeps the source's cache lines in the L1.
__device__ inline void copy_async_l1_resident(uint32_t to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

// Ends a group of copies. The group consists of this thread's copies since its previous group; it may be empty.
__device__ inline void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits until all but the last Pending groups of this thread are complete. Other threads see the data only after a
// barrier.
template <int Pending>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

}  // namespace heddle::tile::sm80
