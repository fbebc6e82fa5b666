// The order in which persistent GEMM blocks process units of work, and flags that signal partial sums between blocks.
#pragma once

#include "tile/arch/sm90/barrier.h"
#include "tile/core/cuda_gemm.h"

namespace heddle::tile::sm90 {

// The current stage of the ring, and the phase of its barriers.
template <int Stages>
struct PipelineState {
  uint32_t stage = 0, phase = 0;
  __device__ void step() {
    if (++stage == Stages) {
      stage = 0;
      phase ^= 1;
    }
  }
  __device__ void skip(uint32_t steps) {
    const uint32_t to = stage + steps;
    phase ^= (to / Stages) & 1;
    stage = to % Stages;
  }
};

// The sequence of work units of one cluster of blocks. The first units are tiles (or parts of tiles along k), at a
// fixed stride. With stream-K, the block's share of the tiles args.whole, args.whole + 1, ... follows.
template <typename Config>
struct PersistentTileScheduler {
  static constexpr int kCluster = Config::kClusterM * Config::kClusterN;

  const GemmArgs& args;
  int32_t unit, step, count, rank;
  StreamRange share{0, 0};  // the remaining part of the block's share, in k-tiles

  __device__ explicit PersistentTileScheduler(const GemmArgs& a) : args(a) {
    rank = kCluster == 1 ? 0 : static_cast<int32_t>(cluster_rank());
    unit = static_cast<int32_t>(blockIdx.x) / kCluster;
    step = static_cast<int32_t>(gridDim.x) / kCluster;
    count = units(args);
    if constexpr (kStreamK<Config>) {
      share = stream_share(streamed(args), static_cast<int32_t>(gridDim.x), stream_number());
      count = args.whole;
    }
  }
  __device__ static int32_t units(const GemmArgs& args) {
    return args.tiles_m * args.tiles_n * args.splits * args.batch;
  }
  // The index of a block among the blocks that share tiles. A block waits only for sums of blocks with higher indices,
  // which started earlier. So at least one block always makes progress, even if few blocks run at the same time.
  __device__ static int32_t stream_number() {
    return static_cast<int32_t>(gridDim.x) - 1 - static_cast<int32_t>(blockIdx.x);
  }
  // The k-tiles that stream-K divides among the blocks.
  __device__ static int64_t streamed(const GemmArgs& args) {
    return static_cast<int64_t>(units(args) - args.whole) * args.k_tiles;
  }

  __device__ bool valid() const { return unit < count || (kStreamK<Config> && share.first < share.last); }
  // Without stream-K: true if this is the last unit.
  __device__ bool last() const { return unit + step >= count; }
  __device__ void next() {
    if (!kStreamK<Config> || unit < count) {
      unit += step;
    } else {
      share.first += segment().last - segment().first;
    }
  }
  __device__ GemmUnit get() const {
    if (kStreamK<Config> && unit >= count) {
      GemmUnit streamed = place(args.whole + static_cast<int32_t>(share.first / args.k_tiles));
      streamed.k = segment();
      return streamed;
    }
    return place(unit);
  }

 private:
  // The k-tiles of the current tile that belong to the block's share.
  __device__ Range segment() const {
    const auto first = static_cast<int32_t>(share.first % args.k_tiles);
    const int64_t left = share.last - share.first, rest = args.k_tiles - first;
    return {first, first + static_cast<int32_t>(left < rest ? left : rest)};
  }
  __device__ GemmUnit place(int32_t number) const {
    GemmUnit u = gemm_unit<Config::kStore == GemmStore::kPartial>(args, number, Config::kTileM * Config::kClusterM,
                                                                  Config::kTileN * Config::kClusterN);
    if constexpr (Config::kClusterM == 2) u.m += rank * Config::kTileM;
    if constexpr (Config::kClusterN == 2) u.n += rank * Config::kTileN;
    return u;
  }
};

// A flag between warps of different blocks. take_flag() waits for the flag and resets it. All values that the lanes
// wrote before raise_flag() are then visible to the warp that called take_flag().
//
// The lane that accesses the flag also executes the fence: in the memory model, a fence and an access to a flag
// synchronise only if one thread executes both. __syncwarp() extends the order to the other lanes.
__device__ inline void raise_flag(uint32_t* flag) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) {
    __threadfence();
    atomicExch(flag, 1u);
  }
}
__device__ inline void take_flag(uint32_t* flag) {
  if (threadIdx.x % 32 == 0) {
    while (atomicCAS(flag, 1u, 0u) == 0) __nanosleep(40);
    __threadfence();
  }
  __syncwarp();
}

}  // namespace heddle::tile::sm90
