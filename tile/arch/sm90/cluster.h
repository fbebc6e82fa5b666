// Stores from a block to the shared memory of other blocks of its cluster, sm_90.
#pragma once

#include "tile/arch/sm90/barrier.h"

namespace heddle::tile::sm90 {

// Stores `value` in the shared memory of block `block` of the cluster, at the same offset as `at` in this block's
// memory. When the store completes, it reports its number of bytes (complete_tx) to the barrier that has the same
// offset as `barrier` in the memory of block `block`. Threads that wait for the current phase of this barrier see the
// value; nothing else orders the store.
__device__ inline void store_async(float* at, float value, Barrier* barrier, uint32_t block) {
  asm volatile(
      "{\n"
      ".reg .b32 to, done;\n"
      "mapa.shared::cluster.u32 to, %0, %3;\n"
      "mapa.shared::cluster.u32 done, %2, %3;\n"
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [to], %1, [done];\n"
      "}" ::"r"(shared_address(at)),
      "r"(__float_as_uint(value)), "r"(shared_address(barrier)), "r"(block)
      : "memory");
}

// Like store_async(), for 1, 2 or 4 words at once, aligned to their total size.
template <int Words>
__device__ inline void store_words_async(uint32_t* at, const uint32_t (&w)[Words], Barrier* barrier, uint32_t block) {
  static_assert(Words == 1 || Words == 2 || Words == 4);
  uint32_t to, done;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(shared_address(at)), "r"(block));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(done) : "r"(shared_address(barrier)), "r"(block));
  if constexpr (Words == 1) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(to), "r"(w[0]),
                 "r"(done)
                 : "memory");
  } else if constexpr (Words == 2) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(to),
                 "r"(w[0]), "r"(w[1]), "r"(done)
                 : "memory");
  } else {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
        "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "r"(done)
        : "memory");
  }
}

}  // namespace heddle::tile::sm90
