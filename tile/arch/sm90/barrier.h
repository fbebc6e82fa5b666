// Barriers in shared memory, proxy fences, clusters, and register reallocation of sm_90a.
#pragma once

#include "tile/arch/sm80/named_barrier.h"
#include "tile/arch/sm80/shared.h"

namespace heddle::tile::sm90 {

using cuda::named_barrier_arrive;
using cuda::named_barrier_sync;
using cuda::shared_address;

// A transaction barrier (mbarrier). A phase ends when `arrivals` threads have arrived and all expected bytes have been
// written.
struct Barrier {
  uint64_t state;

  __device__ void init(uint32_t arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(this)), "r"(arrivals) : "memory");
  }
  // Arrives, and increases the number of bytes that the current phase expects by `bytes`.
  __device__ void arrive_expect(uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(this)), "r"(bytes)
                 : "memory");
  }
  __device__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(this)) : "memory");
  }
  // Lets this thread's arrival take effect once all cp.async copies that it has issued so far are complete. Does not
  // wait.
  __device__ void arrive_behind_copies() {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(this)) : "memory");
  }
  // Arrives on the barrier at the same offset in block `block` of the cluster, which may be this block. Does not order
  // ordinary memory accesses of the two blocks: a release and an acquire at cluster scope go to the L2, which takes
  // most of a microsecond. Accesses by TMA and the tensor cores are ordered by their own completion.
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
  // Waits until the phase with this parity has ended. On a new barrier, parity 1 counts as ended.
  __device__ void wait(uint32_t parity) {
    while (!try_wait(parity)) {
    }
  }
  // Like wait(), but gives up after about two microseconds, for callers that only want to stay in step. Does not use
  // try_wait, which may itself block that long or longer.
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

// Makes the initialisation of barriers visible to the cluster and to TMA.
__device__ inline void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
// Orders this thread's writes to shared memory before later reads of that memory by TMA or the tensor cores.
__device__ inline void fence_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// Orders this thread's writes to global memory before later reads of that memory by TMA.
__device__ inline void fence_async_global() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

__device__ inline uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
// Copies shared memory from `from` to the offset of `to` in block `block` of the cluster, which may be this block. The
// barrier at the offset of `full` in that block counts the bytes. All pointers are to this block's shared memory;
// addresses and `bytes` are multiples of 16. The destination block must have started, and this block must not exit
// until the bytes have arrived.
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
// The two halves of a cluster barrier without memory ordering, for use after fence_barrier_init(). All threads must
// call cluster_arrive(). Only threads that depend on the arrival of other threads need to call cluster_wait().
__device__ inline void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}
__device__ inline void cluster_wait() {
  asm volatile("barrier.cluster.wait;" ::: "memory");
}

// Sets the registers per thread of a warpgroup. warpgroup_reg_dealloc() releases registers. warpgroup_reg_alloc() waits
// until enough registers have been released. All four warps of the warpgroup must execute the call.
template <int Registers>
__device__ inline void warpgroup_reg_dealloc() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ inline void warpgroup_reg_alloc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

}  // namespace heddle::tile::sm90
