// A ring of shared-memory slots (sm_90a). TMA fills a slot some loop iterations before warps read it. Not part of
// block.h.
#pragma once

#include "tile/arch/sm90/barrier.h"
#include "tile/arch/sm90/tma.h"
#include "tile/block/wgmma.h"

namespace heddle::tile::block {

// A ring of `Stages` slots: `fill` is the slot to fill next, `use` the slot to read next. A slot is free when all
// `Warps` computing warps have released it. All threads of the block construct the ring at the beginning of the kernel.
// `memory` points to kBytes bytes of shared memory that nothing else uses. The slots are filled either by a computing
// thread or by a thread of an additional warp. A thread of an additional warp first waits until the computing warps
// open the ring.
template <int Stages, int Warps>
struct Ring {
  static constexpr int kStages = Stages, kBytes = (2 * Stages + 1) * int(sizeof(sm90::Barrier));
  sm90::Barrier *full, *empty, *opened;
  uint32_t fill = 0, fill_phase = 0, use = 0, use_phase = 0;
  int held = -1;  // the slot that a product is still reading; -1: none

  TILE_INLINE explicit Ring(uint8_t* memory)
      : full(reinterpret_cast<sm90::Barrier*>(memory)), empty(full + Stages), opened(empty + Stages) {
    if (threadIdx.x == 0) {
      opened->init(Warps);
      for (int i = 0; i < Stages; ++i) {
        full[i].init(1);
        empty[i].init(Warps);
      }
      sm90::fence_barrier_init();
      sm90::fence_async_shared();
    }
  }

  // Orders this thread's earlier ordinary writes to the memory of the slots before the writes of TMA, and reports that
  // this warp is ready.
  TILE_INLINE void open() const {
    sm90::fence_async_shared();
    __syncwarp();
    if (threadIdx.x % 32 == 0) opened->arrive();
  }
  TILE_INLINE void wait_until_open() const { opened->wait(0); }

  // Waits until the slot to fill is free, then makes its barrier expect `bytes` bytes. Called by one thread.
  TILE_INLINE void begin_fill(uint32_t bytes) const {
    empty[fill].wait(fill_phase ^ 1);
    full[fill].arrive_expect(bytes);
  }
  TILE_INLINE void end_fill() { step(fill, fill_phase); }

  // Waits until the slot to read next is full.
  TILE_INLINE void wait() const { full[use].wait(use_phase); }
  // second() returns the slot after the slot to read next. wait_second() waits until that slot is full.
  TILE_INLINE uint32_t second() const { return use + 1 == uint32_t(Stages) ? 0 : use + 1; }
  TILE_INLINE void wait_second() const { full[second()].wait(use_phase ^ uint32_t(second() == 0)); }
  // Call this when the slot has been read.
  TILE_INLINE void release() {
    free(use);
    step(use, use_phase);
  }
  // Call this when a product has begun to read the slot and the previous product has ended.
  TILE_INLINE void hold() {
    if (held >= 0) free(uint32_t(held));
    held = int(use);
    step(use, use_phase);
  }
  // Call this when all products have ended.
  TILE_INLINE void let_go() {
    if (held >= 0) free(uint32_t(held));
    held = -1;
  }

 private:
  TILE_INLINE void free(uint32_t slot) const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) empty[slot].arrive();
  }
  TILE_INLINE static void step(uint32_t& slot, uint32_t& phase) {
    slot = slot + 1 == uint32_t(Stages) ? 0 : slot + 1;
    phase ^= uint32_t(slot == 0);
  }
};

// load_boxes() loads all boxes of a swizzled operand through a tensor map. One thread calls it. (inner, row, batch...)
// are the coordinates of the first element of the first box. box_bytes<O>() returns the total size of the boxes in
// bytes.
template <typename O>
TILE_HD constexpr uint32_t box_bytes() {
  return O::kAlongK ? uint32_t(O::kDepth / 64 * O::kGivenRows * 128) : uint32_t(O::kStrips * O::kDepth * 128);
}
template <typename O, typename... Batch>
TILE_INLINE void load_boxes(const sm90::TensorMap& map, sm90::Barrier& full, typename O::element* memory, int32_t inner,
                            int32_t row, Batch... batch) {
  constexpr int kBoxes = O::kAlongK ? O::kDepth / 64 : O::kStrips;
#pragma unroll
  for (int i = 0; i < kBoxes; ++i) {
    sm90::load_box(map, full, reinterpret_cast<uint8_t*>(memory) + i * O::kStripBytes, inner + 64 * i, row, batch...,
                   sm90::CacheHint::kEvictNormal);
  }
}

}  // namespace heddle::tile::block
