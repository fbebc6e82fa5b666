// TMA copies of boxes of a rank-3 tensor (inner, row, batch) between global and shared memory. Elements outside of the
// tensor read as zero and are not written.
#pragma once

#include <stdint.h>

#include "tile/arch/sm90/barrier.h"

namespace heddle::tile::sm90 {

// The driver's tensor map. Its content is opaque.
struct alignas(64) TensorMap {
  uint64_t words[16];
};

// L2 eviction priorities for the loaded data.
enum class CacheHint : uint64_t {
  kEvictNormal = 0x1000000000000000,
  kEvictFirst = 0x12F0000000000000,
  kEvictLast = 0x14F0000000000000
};

__device__ inline void prefetch(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Prevents the compiler from removing the load of `x`.
__device__ inline void in_use(uint32_t x) {
  asm volatile("{\n.reg .pred p;\nsetp.eq.u32 p, %0, 0x12345678;\n@p nanosleep.u32 1;\n}" ::"r"(x));
}
// Prefetches `bytes` bytes at `from` into the L2. `from` must be a multiple of 16. If `bytes` is not a multiple of 16,
// the remainder is not prefetched. The lanes of a warp issue the instruction one after another.
__device__ inline void prefetch_global(const void* from, uint32_t bytes) {
  if (bytes < 16) return;
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(from)), "r"(bytes & ~15u));
}

__device__ inline void load_box(const TensorMap& map, Barrier& full, void* to, int32_t inner, int32_t row,
                                int32_t batch, CacheHint keep) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%3, %4, "
      "%5}], [%2], %6;" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(&full)), "r"(inner), "r"(row), "r"(batch), "l"(static_cast<uint64_t>(keep))
      : "memory");
}

// Prefetches a box into the L2.
__device__ inline void prefetch_box(const TensorMap& map, int32_t inner, int32_t row, int32_t batch) {
  asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global [%0, {%1, %2, %3}];" ::"l"(&map), "r"(inner), "r"(row),
               "r"(batch)
               : "memory");
}

// Loads a box of a tensor map of rank 4, whose last dimension is `outer`.
__device__ inline void load_box(const TensorMap& map, Barrier& full, void* to, int32_t inner, int32_t row,
                                int32_t batch, int32_t outer, CacheHint keep) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%3, %4, "
      "%5, %6}], [%2], %7;" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(&full)), "r"(inner), "r"(row), "r"(batch), "r"(outer),
      "l"(static_cast<uint64_t>(keep))
      : "memory");
}

// Loads a box into every block of the cluster whose bit in the mask `blocks` is set. Each of these blocks gets the box
// at the same shared-memory offset, and its barrier at the same offset as `full` counts the bytes.
__device__ inline void load_box_multicast(const TensorMap& map, Barrier& full, void* to, int32_t inner, int32_t row,
                                          int32_t batch, uint16_t blocks, CacheHint keep) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
      "[%0], [%1, {%3, %4, %5}], [%2], %6, %7;" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(&full)), "r"(inner), "r"(row), "r"(batch), "h"(blocks),
      "l"(static_cast<uint64_t>(keep))
      : "memory");
}

// An im2col load. For consecutive windows of a convolution, loads the pixel under one tap of each window as a row. The
// images are (channels, width, height, image). The map gives the number of windows and the number of channels to load.
// The first tap of the first window is at (x, y) of `image`. The channels start at `channel`.
__device__ inline void load_windows(const TensorMap& map, Barrier& full, void* to, int32_t channel, int32_t x,
                                    int32_t y, int32_t image, int32_t tap_x, int32_t tap_y, CacheHint keep) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, "
      "{%3, %4, %5, %6}], [%2], {%7, %8}, %9;" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(&full)), "r"(channel), "r"(x), "r"(y), "r"(image),
      "h"(static_cast<uint16_t>(tap_x)), "h"(static_cast<uint16_t>(tap_y)), "l"(static_cast<uint64_t>(keep))
      : "memory");
}
__device__ inline void load_windows_multicast(const TensorMap& map, Barrier& full, void* to, int32_t channel, int32_t x,
                                              int32_t y, int32_t image, int32_t tap_x, int32_t tap_y, uint16_t blocks,
                                              CacheHint keep) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_"
      "hint [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8}, %9, %10;" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(&full)), "r"(channel), "r"(x), "r"(y), "r"(image),
      "h"(static_cast<uint16_t>(tap_x)), "h"(static_cast<uint16_t>(tap_y)), "h"(blocks),
      "l"(static_cast<uint64_t>(keep))
      : "memory");
}

__device__ inline void store_box(const TensorMap& map, const void* from, int32_t inner, int32_t row, int32_t batch) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(&map),
               "r"(shared_address(from)), "r"(inner), "r"(row), "r"(batch)
               : "memory");
}
__device__ inline void commit_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// Waits until all store groups of this thread, except the last Pending groups, have read their shared memory.
template <int Pending>
__device__ inline void wait_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}

}  // namespace heddle::tile::sm90
