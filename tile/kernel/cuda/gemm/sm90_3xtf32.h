// The main loop of tile/kernel/cuda/gemm/sm90.h for f32 operands that are split into two tf32 parts
// (tile/kernel/cuda/operand/split_tf32.h). One warpgroup splits the elements of B in shared memory. The consumer
// warpgroups split the elements of A when they load them into registers. The products of each k-tile are added to the
// accumulators by ordinary additions, because tensor cores truncate when they add.
#pragma once

#include "tile/kernel/cuda/gemm/sm90_shared.h"
#include "tile/kernel/cuda/gemm/tile_scheduler.h"
#include "tile/kernel/cuda/operand/split_tf32_sm90.h"

namespace heddle::tile::sm90 {

// The code of the warpgroup that splits B. The warpgroup must already have waited for the initialization of the
// barriers.
template <typename Config>
__device__ inline void gemm_split(const GemmArgs& args, const GemmShared<Config>& shared) {
  using Traits = GemmTraits<Config>;
  const uint32_t warp = threadIdx.x / 32 % kGemmSplitWarps;
  PipelineState<Traits::kStages> at;
  for (PersistentTileScheduler<Config> walk(args); walk.valid(); walk.next()) {
    const GemmUnit unit = walk.get();
#pragma unroll 1
    for (int32_t k = unit.k.first; k < unit.k.last; ++k, at.step()) {
      shared.full[at.stage].wait(at.phase);
      const uint32_t offset = at.stage * Traits::kBBytes;
      const bool by_fma = split_tile<Traits::kBBytes, 32 * kGemmSplitWarps>(shared.b + offset, shared.low + offset);
      __syncwarp();
      if (threadIdx.x % 32 == 0) {
        reinterpret_cast<uint8_t*>(shared.by_fma + at.stage)[warp] = by_fma;
        shared.split[at.stage].arrive();
      }
    }
  }
}

// Computes acc += A B over the next `k_tiles` (at least one) k-tiles of the ring. `row`: the first row of this
// warpgroup in the tile of A.
template <typename Config>
__device__ inline void multiply_split(float (&acc)[Config::kTileN / 2], const GemmShared<Config>& shared,
                                      int32_t k_tiles, uint32_t row, PipelineState<Config::kStages>& at) {
  using Traits = GemmTraits<Config>;
  constexpr int kSums = Config::kTileN / 2;
  const uint32_t lane = threadIdx.x % 32, first = row + threadIdx.x / 32 % 4 * 16;
  const uint32_t of_b = shared_address(shared.b), of_low = shared_address(shared.low);
  constexpr int kChains = Config::kTileN <= 32 ? 3 : 1;
  SplitRows a(first);
  shared.full[at.stage].wait(at.phase);
  a.read(shared.a + at.stage * Traits::kABytes);
  float most = a.largest();
  a.take_apart();
  int32_t k = 0;
#pragma unroll 1
  do {
    shared.split[at.stage].wait(at.phase);
    float sums[kChains][kSums];
    wgmma_fence();
    a.multiply<Config::kTileN>(sums, of_b + at.stage * Traits::kBBytes, of_low + at.stage * Traits::kBBytes);
    wgmma_commit();
    // This code runs while the asynchronous product is in flight. It determines whether FMA must compute the product
    // instead, because the numbers are outside the range for tf32 parts. It also reads the next tile of A. After the
    // last tile, it reads the last tile again.
    const uint32_t stage = at.stage;
    const bool by_fma = shared.by_fma[stage] != 0 || cuda::leaves_range(most);
    PipelineState<Config::kStages> next = at;
    next.step();
    at = k + 1 < k_tiles ? next : at;
    shared.full[at.stage].wait(at.phase);
    a.read(shared.a + at.stage * Traits::kABytes);
    most = a.largest();
    wgmma_wait<0>();
    a.release();
    if (__builtin_expect(by_fma, 0)) {
      multiply_tile_by_fma<Config::kTileN>(acc, shared.a + stage * Traits::kABytes + first * kGemmRowBytes,
                                           shared.b + stage * Traits::kBBytes, shared.low + stage * Traits::kBBytes);
    } else {
      add_sums(acc, sums);
    }
    a.take_apart();
    __syncwarp();
    if constexpr (Traits::kCluster == 1) {
      if (lane == 0) shared.empty[stage].arrive();
    } else {
      if (lane < Traits::kCluster) shared.empty[stage].arrive_at(lane);
    }
  } while (++k < k_tiles);
  at.step();
}

}  // namespace heddle::tile::sm90
