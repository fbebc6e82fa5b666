// Barriers in shared memory, fences between proxies, clusters and register budgets of sm_90a.
#pragma once

#include "tile/arch/sm80/named_barrier.h"
#include "tile/arch/sm80/shared.h"

namespace heddle::tile::sm90 {

using cuda::named_barrier_arrive;
using cuda::named_barrier_sync;
using cuda::shared_address;

// A transaction barrier. A phase ends when `arrivals` threads have arrived and all expected bytes have come.
struct Barrier {
  uint64_t state;

  __device__ void init(uint32_t arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(this)), "r"(arrivals) : "memory");
  }
  // Arrives, and adds `bytes` to the bytes that this phase waits for.
  __device__ void arrive_expect(uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(this)), "r"(bytes)
                 : "memory");
  }
  __device__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(this)) : "memory");
  }
  // Arrives when all cp.async that this thread has issued so far are complete.
  __device__ void arrive_behind_copies() {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(this)) : "memory");
  }
  // Arrives on the barrier at the same offset in another block of the cluster (or in this one). It does not order
  // ordinary accesses of the blocks: at cluster scope, a release and its acquire reach the L2, which takes most of a
  // microsecond. Accesses by TMA and the tensor cores are ordered by their own completion.
  __device__ void arrive_at(uint32_t block) {
    asm volatile(
        "{\n"
        ".reg .b32 remote;\n"
        "mapa.shared::cluster.u32 remote, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
        "}" ::"r"(shared_address(this)),
        "r"(block)
        : "memory");
  }
  // Waits until the phase of this parity has ended. Parity 1 of a fresh barrier counts as ended.
  __device__ void wait(uint32_t parity) {
    while (!try_wait(parity)) {
    }
  }
  // The same for at most about two microseconds, for callers that only want to keep pace. It does not use try_wait,
  // which may itself wait that long or longer.
  __device__ void wait_briefly(uint32_t parity) {
    for (int i = 0; i < 32 && !test_wait(parity); ++i) __nanosleep(40);
  }
  __device__ bool test_wait(uint32_t parity) {
    uint32_t done;
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.b32 %0, 1, 0, p;\n"
        "}"
        : "=r"(done)
        : "r"(shared_address(this)), "r"(parity)
        : "memory");
    return done != 0;
  }
  __device__ bool try_wait(uint32_t parity) {
    uint32_t done;
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.b32 %0, 1, 0, p;\n"
        "}"
        : "=r"(done)
        : "r"(shared_address(this)), "r"(parity)
        : "memory");
    return done != 0;
  }
};

// Makes initialised barriers visible to the cluster and to TMA.
__device__ inline void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
// Orders ordinary writes to shared memory before reads of it by TMA or the tensor cores.
__device__ inline void fence_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// The same for global memory.
__device__ inline void fence_async_global() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

__device__ inline uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
// Copies shared memory to another block of the cluster (or this one). That block's barrier at the offset of `full`
// counts the bytes. Pointers are this block's; addresses and `bytes` are multiples of 16. The other block must have
// begun, and this block must stay until the bytes have arrived.
__device__ inline void copy_to_block(void* to, const void* from, uint32_t bytes, Barrier& full, uint32_t block) {
  asm volatile(
      "{\n"
      ".reg .b32 there, barrier;\n"
      "mapa.shared::cluster.u32 there, %0, %4;\n"
      "mapa.shared::cluster.u32 barrier, %3, %4;\n"
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [there], [%1], %2, [barrier];\n"
      "}" ::"r"(shared_address(to)),
      "r"(shared_address(from)), "r"(bytes), "r"(shared_address(&full)), "r"(block)
      : "memory");
}
__device__ inline void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// The two halves of a cluster barrier after fence_barrier_init(). They do not order ordinary writes. All threads
// arrive; only threads that depend on the others' arrival wait.
__device__ inline void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}
__device__ inline void cluster_wait() {
  asm volatile("barrier.cluster.wait;" ::: "memory");
}

// Moves registers between the warpgroups of a block; all four warps execute it.
template <int Registers>
__device__ inline void warpgroup_reg_dealloc() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ inline void warpgroup_reg_alloc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

}  // namespace heddle::tile::sm90
