// Passes accumulators from one warpgroup of tile/kernel/cuda/gemm/sm90.h to another: to a warpgroup of another block
// (stream-K), or to the other warpgroup of the block.
#pragma once

#include "tile/arch/sm90/barrier.h"
#include "tile/core/cuda_gemm.h"
#include "tile/kernel/cuda/gemm/sm90_shared.h"
#include "tile/kernel/cuda/gemm/store.h"
#include "tile/kernel/cuda/gemm/tile_scheduler.h"

namespace heddle::tile::sm90 {

// Id of a named barrier: signals that half of the last tile's accumulators are written.
inline constexpr int kHalfGiven = 2;

// The address at which a thread of warpgroup `group` stores its accumulators of block `from`. Neighbouring threads use
// neighbouring addresses.
template <typename Config>
__device__ inline auto* sums_of_block(const GemmArgs& args, int32_t group, int32_t from) {
  using Traits = GemmTraits<Config>;
  auto* sums = static_cast<typename Traits::Acc*>(args.partial) + int64_t{from} * (Config::kTileM * Config::kTileN);
  return sums + group * (Traits::kRowsPerGroup * Config::kTileN) + threadIdx.x % 128;
}

// Stores the accumulators of a tile for the block that computes the first part of k of this tile, and raises a flag.
template <typename Config>
__device__ inline void store_partials(const GemmAccumulators<Config>& acc, const GemmArgs& args, int32_t group) {
  const int32_t block = PersistentTileScheduler<Config>::stream_number();
  auto* to = sums_of_block<Config>(args, group, block);
#pragma unroll
  for (int m = 0; m < GemmTraits<Config>::kBlocksM; ++m) {
#pragma unroll
    for (int i = 0; i < Config::kTileN / 2; ++i) to[(m * (Config::kTileN / 2) + i) * 128] = acc[m][i];
  }
  raise_flag(args.flags + (block * Config::kConsumers + group) * 4 + threadIdx.x / 32 % 4);
}

// Adds the partial sums that the following blocks computed for this block's last tile. The order of the blocks is
// fixed, so the result is the same in every run.
template <typename Config>
__device__ inline void load_partials(GemmAccumulators<Config>& acc, const GemmArgs& args, int32_t group,
                                     int32_t missing) {
  for (int32_t block = PersistentTileScheduler<Config>::stream_number() + 1; missing > 0; ++block) {
    const StreamRange share =
        stream_share(PersistentTileScheduler<Config>::streamed(args), static_cast<int32_t>(gridDim.x), block);
    take_flag(args.flags + (block * Config::kConsumers + group) * 4 + threadIdx.x / 32 % 4);
    const auto* from = sums_of_block<Config>(args, group, block);
#pragma unroll
    for (int m = 0; m < GemmTraits<Config>::kBlocksM; ++m) {
#pragma unroll
      for (int i = 0; i < Config::kTileN / 2; ++i) acc[m][i] += from[(m * (Config::kTileN / 2) + i) * 128];
    }
    missing -= static_cast<int32_t>(share.last - share.first);
  }
}

// True if both warpgroups share the epilogue of a block's last tile. In ping-pong mode, this epilogue overlaps with
// nothing, and one warpgroup is idle. The idle warpgroup processes the second half of the tile's pieces. It receives
// the accumulators through the memory of the ring, which is empty by then. This costs about 500 cycles, so it is used
// only for epilogues that compute something.
template <typename Config, typename Epilogue>
inline constexpr bool kSharesLast =
    kPingPong<Config>&& Config::kStore == GemmStore::kTma && !kSwapped<Config> && InSteps<Epilogue>::costly &&
    is_same<typename GemmTraits<Config>::Acc, float> && GemmTraits<Config>::kPieces % 2 == 0 &&
    (!GemmTraits<Config>::kResidual || GemmTraits<Config>::kResidualPieces == GemmTraits<Config>::kResidualPlaces);

// Passes half of the accumulators to the other warpgroup. Each thread stores its sums in groups of four; the groups of
// neighbouring threads are contiguous.
template <typename Config>
struct HalfOfSums {
  static constexpr int kRow = Config::kTileN / 2, kFirst = GemmTraits<Config>::kBlocksM * kRow / 2;
  struct alignas(16) Four {
    float sums[4];
  };
  static_assert(kFirst % 4 == 0 && kFirst * 128 * 4 <= GemmTraits<Config>::kStages * GemmTraits<Config>::kABytes);

  static __device__ Four* place(const GemmShared<Config>& shared) {
    return reinterpret_cast<Four*>(shared.a) + threadIdx.x % 128;
  }
  static __device__ void give(const GemmAccumulators<Config>& acc, const GemmShared<Config>& shared) {
    Four* to = place(shared);
#pragma unroll
    for (int i = 0; i < kFirst; i += 4) {
      Four four;
#pragma unroll
      for (int j = 0; j < 4; ++j) four.sums[j] = acc[(kFirst + i + j) / kRow][(kFirst + i + j) % kRow];
      to[i / 4 * 128] = four;
    }
    named_barrier_arrive<kHalfGiven>(256);
  }
  static __device__ void take(GemmAccumulators<Config>& acc, const GemmShared<Config>& shared) {
    const Four* from = place(shared);
    named_barrier_sync<kHalfGiven>(256);
#pragma unroll
    for (int i = 0; i < kFirst; i += 4) {
      const Four four = from[i / 4 * 128];
#pragma unroll
      for (int j = 0; j < 4; ++j) acc[(kFirst + i + j) / kRow][(kFirst + i + j) % kRow] = four.sums[j];
    }
  }
};

}  // namespace heddle::tile::sm90
