// What the blocks of a cluster do with each other's shared memory, sm_90.
#pragma once

#include "tile/arch/sm90/barrier.h"

namespace heddle::tile::sm90 {

// Stores `value` at the place of *at in a block of the cluster and reports its bytes to the barrier at the place of
// *barrier there. Whoever waits for that barrier's phase sees the value; nothing else orders it.
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

// The two halves of cluster_sync(): what is written before the arrival is seen after the wait.
__device__ inline void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ inline void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// The same place in the shared memory of block `rank` of the cluster. That block must have begun, and must not end
// before its memory is left alone.
template <typename T>
__device__ inline T* in_block(T* own, uint32_t rank) {
  uint64_t there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(reinterpret_cast<uint64_t>(own)), "r"(rank));
  return reinterpret_cast<T*>(there);
}

}  // namespace heddle::tile::sm90
