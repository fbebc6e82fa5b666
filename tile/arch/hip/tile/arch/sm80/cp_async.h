// The copies of tile/arch/sm80/cp_async.h for AMD GPUs: through registers. The compiler waits for the load in front of
// the store to LDS, so a committed group is complete.
#pragma once

#include <stdint.h>

namespace heddle::tile::sm80 {

// True if copies need no registers and go on while their thread computes.
inline constexpr bool kCopiesAsync = false;

template <int Bytes>
__device__ inline void copy_async(uint32_t to, const void* from, uint32_t valid) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16);
  typedef uint32_t Words __attribute__((ext_vector_type(Bytes / 4)));
  Words words = {};
  if (valid == Bytes) {
    words = *static_cast<const Words*>(from);
  } else {
    for (uint32_t i = 0; i < valid; ++i) {
      words[i / 4] |= static_cast<uint32_t>(static_cast<const uint8_t*>(from)[i]) << (8 * (i % 4));
    }
  }
  *(__attribute__((address_space(3))) Words*)to = words;
}
template <int Bytes>
__device__ inline void copy_async_if(bool wanted, uint32_t to, const void* from, uint32_t valid) {
  if (wanted) copy_async<Bytes>(to, from, valid);
}
__device__ inline void copy_async_evict_first(uint32_t to, const void* from) {
  copy_async<16>(to, from, 16);
}
__device__ inline void copy_async_l1_resident(uint32_t to, const void* from) {
  copy_async<16>(to, from, 16);
}
__device__ inline void commit_copies() {}
template <int Pending>
__device__ inline void wait_copies() {}

}  // namespace heddle::tile::sm80
