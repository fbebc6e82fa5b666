// Constants that are derived from a configuration of tile/kernel/cuda/gemm/sm90.h, and the kernel's layout of shared
// memory.
#pragma once

#include "tile/arch/sm90/barrier.h"
#include "tile/arch/sm90/wgmma.h"
#include "tile/core/cuda_gemm.h"

namespace heddle::tile::sm90 {

// The index of this thread's warp in the block. The shuffle lets the compiler know that all lanes have the same value.
__device__ inline int32_t warp_of_block() {
  return __shfl_sync(0xffffffffu, static_cast<int32_t>(threadIdx.x) / 32, 0);
}

// The default values of a configuration's fields.
struct GemmDefaults {
  static constexpr int kClusterM = 1, kClusterN = 1;
  static constexpr bool kAKMajor = true, kBKMajor = true;
  static constexpr bool kConstantA = false, kConstantB = false, kReadOnceA = false, kReadOnceB = false;
  static constexpr bool kWholeColumns = false;
  static constexpr auto kSchedule = GemmSchedule::kCooperative;
  static constexpr auto kForm = GemmForm::kPlain;
  static constexpr auto kStore = GemmStore::kTma;
};

template <typename Config>
struct GemmTraits {
  using In = typename Config::In;
  using Acc = accumulator_t<In>;
  static constexpr int kTileM = Config::kTileM, kTileN = Config::kTileN, kStages = Config::kStages;
  static constexpr bool kSplit =
      is_same<In, tf32x2>;  // an extra warpgroup splits f32 numbers into two tf32 parts (gemm/sm90_3xtf32.h)
  static constexpr int kConsumers = Config::kConsumers, kOthers = kSplit ? 2 : 1;
  static constexpr int kThreads = 128 * (kConsumers + kOthers);
  static constexpr int kTileK = kGemmRowBytes / sizeof(In);
  static constexpr int kCluster = Config::kClusterM * Config::kClusterN;
  static constexpr int kRowsPerGroup = kPingPong<Config> ? kTileM : kTileM / kConsumers;
  static constexpr int kBlocksM = kRowsPerGroup / 64;  // the number of 64-row wgmma blocks per warpgroup
  static constexpr int kABytes = gemm_operand_bytes(kTileM, Config::kAKMajor);
  static constexpr int kBBytes = gemm_operand_bytes(kTileN, Config::kBKMajor);
  static constexpr int kStripBytes = kTileK * kGemmRowBytes;
  static constexpr bool kGated = Config::kForm == GemmForm::kGated, kResidual = Config::kForm == GemmForm::kResidual;
  static constexpr int kStoredN = kGated ? kTileN / 2 : kTileN;  // the columns of D per tile
  static constexpr int kPieces =
      kBlocksM * kStoredN * static_cast<int>(sizeof(typename Config::Out)) /
      gemm_piece(kStoredN, sizeof(typename Config::Out)).bytes;  // pieces per warp and tile, with GemmStore::kTma
  static constexpr int kResidualPieces = gemm_residual_pieces(kTileM, kTileN, kConsumers, kPingPong<Config>);
  static constexpr int kResidualPlaces = gemm_residual_places(kTileM, kTileN, kConsumers, kPingPong<Config>);
  static constexpr int kStagingBytes =
      kResidual ? gemm_residual_bytes(kTileM, kTileN, kConsumers, kPingPong<Config>)
                : gemm_staging_bytes(Config::kStore, kSwapped<Config>, kStoredN, sizeof(typename Config::Out));
  static constexpr int kSharedBytes =
      gemm_shared_bytes(kTileM, kTileN, Config::kAKMajor, Config::kBKMajor, kStages, kConsumers, kStagingBytes) +
      (kSplit ? gemm_split_bytes(kTileN, kStages) : 0) + (kResidual ? kGemmResidualBarrierBytes : 0);
  // The number of arrivals that free a stage. In every block of the cluster, each warpgroup that reads the stage
  // arrives once. With kSplit, each warp arrives, since its threads read the stage themselves.
  static constexpr int kReaders = (kPingPong<Config> ? 1 : kConsumers) * kCluster * (kSplit ? 4 : 1);
  static_assert(kRowsPerGroup % 64 == 0 && kTileN % (kSwapped<Config> ? 16 : 8) == 0 && kTileN <= 256);
  static_assert(kCluster == 1 || kCluster == 2);
  static_assert(!kResidual || (Config::kStore == GemmStore::kTma && !kStreamK<Config> &&
                               sizeof(typename Config::Out) == 2 && kTileN % 64 == 0));
  static_assert(!kPingPong<Config> || kConsumers == 2);
  static_assert(!kGated || kTileN % (2 * kGemmGateColumns) == 0);
  static_assert(!kSplit || (!kPingPong<Config> && kBlocksM == 1 && kTileN <= 128 && kTileN % 16 == 0));
  static_assert(!kStreamK<Config> || (kCluster == 1 && Config::kStore != GemmStore::kPartial));
  static_assert((Config::kAKMajor && Config::kBKMajor) || sizeof(In) == 2);
};

// A thread's accumulators of its warpgroup's tile: kBlocksM blocks of 64 rows.
template <typename Config>
using GemmAccumulators = typename GemmTraits<Config>::Acc[GemmTraits<Config>::kBlocksM][Config::kTileN / 2];

template <typename Config>
struct GemmShared {
  using Traits = GemmTraits<Config>;
  uint8_t* a;
  uint8_t* b;
  uint8_t* staging;
  Barrier* full;
  Barrier* empty;
  Barrier* turn;           // kPingPong, by warpgroup: all k-tiles of the other warpgroup's tile have arrived
  Barrier* residual_full;  // [consumer warp][the warp's buffer in `staging`]: a piece of the residual has arrived
  uint8_t* low;            // kSplit, by stage: the low tf32 parts of B
  Barrier* split;          // kSplit, by stage: B has been split
  uint32_t* by_fma;        // kSplit, by stage: one byte per warp, nonzero if FMA must multiply

  __device__ explicit GemmShared(uint8_t* raw) {
    const uint32_t skew = -shared_address(raw) & 1023;  // aligns to 1 KiB; equal in every block of the cluster
    a = raw + skew;
    b = a + Traits::kStages * Traits::kABytes;
    low = b + Traits::kStages * Traits::kBBytes;
    staging = low + (Traits::kSplit ? Traits::kStages * Traits::kBBytes : 0);
    full = reinterpret_cast<Barrier*>(staging + Traits::kConsumers * 4 * Traits::kStagingBytes);
    empty = full + Traits::kStages;
    turn = empty + Traits::kStages;
    residual_full = turn + 2;
    split = residual_full + (Traits::kResidual ? kGemmResidualBarrierBytes / sizeof(Barrier) : 0);
    by_fma = reinterpret_cast<uint32_t*>(split + Traits::kStages);
  }
};

}  // namespace heddle::tile::sm90
