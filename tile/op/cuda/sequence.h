// Runs the blocks of several kernels (phases) in one launch. The blocks of all phases are tasks with consecutive
// numbers, in the order of the phases. A block of the launch takes the next task when it is free.
//
// A task may wait for earlier phases. Their tasks have lower numbers, so blocks that already run hold all of them. The
// launch therefore needs no cooperative grid, and ends with any number of resident blocks.
//
// Data that an earlier phase stored must be read by loads that the L1 may not answer with lines from before the wait:
// ordinary loads, not ld.global.nc.
#pragma once

#include "tile/arch/sm80/global.h"
#include "tile/op/cuda/team.h"

namespace heddle::tile {

// The address of the counters of a sequence: the next task, the number of blocks that have left, and the number of
// finished tasks of each phase. They are zero before a launch and zero again after it.
struct sequence_counters {
  uint32_t* words;
};

template <uint32_t Phases>
class sequence_queue {
 public:
  // `told`: a word of shared memory that no phase uses.
  TILE_INLINE sequence_queue(const sequence_counters& counters, uint8_t* told)
      : counters_(counters.words), told_(reinterpret_cast<uint32_t*>(told)) {}

  // Returns the block's next task. If it is no task of any phase, none is left. All threads must call it.
  TILE_INLINE uint32_t take() const {
    if (threadIdx.x == 0) *told_ = atomicAdd(counters_, 1u);
    __syncthreads();
    return *told_;
  }
  // Waits until all `tasks` of `phase` have finished. All threads must call it, and settle() after the last wait.
  // Thread `thread` loads the counter; loads by different threads overlap.
  TILE_INLINE void wait(uint32_t phase, uint32_t tasks, uint32_t thread) const {
    if (threadIdx.x != thread) return;
    while (sm80::load_now<true>(finished(phase)) < tasks) {
    }
  }
  // Also ends a task for which no phase waits: the next task may use the shared memory.
  TILE_INLINE void settle() const { __syncthreads(); }
  // Tells the other blocks that this block has finished a task of `phase`.
  TILE_INLINE void finish(uint32_t phase) const {
    __syncthreads();  // all stores of the block are before the fence of its first thread
    if (threadIdx.x != 0) return;
    __threadfence();
    atomicAdd(finished(phase), 1u);
  }
  // The last block to leave resets the counters. No block uses them any more: each has seen that no task is left.
  TILE_INLINE void leave() const {
    if (threadIdx.x != 0 || atomicAdd(counters_ + 1, 1u) != gridDim.x - 1) return;
    for (uint32_t i = 0; i < Phases + 2; ++i) atomicExch(counters_ + i, 0u);
  }

 private:
  TILE_INLINE uint32_t* finished(uint32_t phase) const { return counters_ + 2 + phase; }

  uint32_t* counters_;
  uint32_t* told_;
};

}  // namespace heddle::tile
