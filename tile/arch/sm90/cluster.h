// Stores into the shared memory of other blocks of a cluster, sm_90.
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

}  // namespace heddle::tile::sm90
