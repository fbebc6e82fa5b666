// A ring of stages in shared memory. Tiles of both operands are loaded up to Stages - 1 tiles ahead of the
// multiplication.
#pragma once

#include "tile/kernel/cuda/operand/load.h"

namespace heddle::tile::cuda {

// All threads of a block use the ring in the same way:
//
//   Ring<...> ring(shared, a, b, count);        // tile 0 of `count` tiles can be read
//   for each tile {
//     ring.begin_load();                        // starts loading the tile Stages - 1 ahead
//     ... read the stage at ring.current() ...
//     ring.step();                              // completes the load; the next tile becomes current
//   }
//   ring.drain();                               // the shared memory can be used for other purposes
//
// All reads of a stage must come before the step() that leaves the stage. Directly after a step(), a thread may load
// the first elements of the new stage into registers, before it multiplies the last elements of the previous stage.
template <int Stages, typename LoaderA, typename LoaderB>
class Ring {
 public:
  static constexpr int kStageBytes = LoaderA::Tile::kBytes + LoaderB::Tile::kBytes;

  __device__ Ring(uint8_t* shared, LoaderA& a, LoaderB& b, int32_t count)
      : a_(a), b_(b), shared_(shared), ahead_(count) {
#pragma unroll 1
    for (int stage = 0; stage < Stages - 1; ++stage) {
      begin_load();
      end_load();
    }
    wait();
  }

  // The offset of the current stage in shared memory. A's tile is followed by B's tile.
  __device__ uint32_t current() const {
    return read_;
  }

  __device__ void begin_load() {
    if (ahead_ > 0) {
      begin(a_, write_);
      begin(b_, write_ + LoaderA::Tile::kBytes);
    }
    sm80::commit_copies();
  }
  __device__ void step() {
    end_load();
    read_ = after(read_);
    wait();
  }
  __device__ void drain() {
    sm80::wait_copies<0>();
    __syncthreads();
  }

 private:
  __device__ static uint32_t after(uint32_t stage) {
    return stage + kStageBytes == Stages * kStageBytes ? 0 : stage + kStageBytes;
  }
  template <typename Loader>
  __device__ void begin(Loader& loader, uint32_t at) {
    if constexpr (Loader::kAsync) {
      loader.copy(shared_address(shared_) + at);
    } else {
      loader.fetch();
    }
    loader.next();
  }
  // All reads of the stage being written were completed before the last barrier.
  __device__ void end_load() {
    if (ahead_ > 0) {
      if constexpr (!LoaderA::kAsync) a_.put(shared_ + write_);
      if constexpr (!LoaderB::kAsync) b_.put(shared_ + write_ + LoaderA::Tile::kBytes);
    }
    write_ = after(write_);
    --ahead_;
  }
  __device__ void wait() {
    sm80::wait_copies<Stages - 2>();
    __syncthreads();
  }

  LoaderA& a_;
  LoaderB& b_;
  uint8_t* shared_;
  uint32_t read_ = 0, write_ = 0;
  int32_t ahead_;  // the number of tiles that are not loaded yet
};

}  // namespace heddle::tile::cuda
