// A residual matrix of 16-bit elements, which the epilogue reads in addition to the accumulators, on sm_90a. TMA loads
// pieces of the residual into the staging buffers from which the pieces of D are stored.
#pragma once

#include "tile/arch/sm90/barrier.h"
#include "tile/arch/sm90/tma.h"
#include "tile/kernel/cuda/gemm/sm90_shared.h"
#include "tile/kernel/cuda/gemm/store.h"
#include "tile/kernel/cuda/gemm/tile_scheduler.h"

namespace heddle::tile::sm90 {

// The position in D of piece `piece` of warp `warp`. Each warp stores a part of the tile, divided into pieces.
template <typename Config>
struct PiecePlace {
  int32_t row, col;
  __device__ PiecePlace(const GemmUnit& unit, int32_t warp, int32_t piece) {
    constexpr int kAcross = Config::kTileN / 64;
    const int32_t group_row = kPingPong<Config> ? 0 : warp / 4 * GemmTraits<Config>::kRowsPerGroup;
    row = unit.m + group_row + piece / kAcross * 64 + warp % 4 * 16;
    col = unit.n + piece % kAcross * 64;
  }
};

// Requests a TMA load of a piece of the residual into its staging buffer. The residual is read only once, so the L2
// evicts it first and keeps the operands.
template <typename Config>
__device__ inline void bring_piece(const TensorMap& map, const GemmShared<Config>& shared, const GemmUnit& unit,
                                   int32_t warp, int32_t piece) {
  constexpr int kPlaces = GemmTraits<Config>::kResidualPlaces;
  const int32_t place = warp * kPlaces + piece % kPlaces;
  const PiecePlace<Config> at(unit, warp, piece);
  Barrier& full = shared.residual_full[place];
  full.arrive_expect(kGemmStagingBytes);
  load_box(map, full, shared.staging + place * kGemmStagingBytes, at.col, at.row, unit.batch, CacheHint::kEvictFirst);
}

// Each consumer warp initialises the barriers of its staging buffers.
template <typename Config>
__device__ inline void init_residual(const GemmShared<Config>& shared) {
  constexpr int kPlaces = GemmTraits<Config>::kResidualPlaces;
  const int32_t warp = warp_of_block() - 4 * GemmTraits<Config>::kOthers;
  if (warp < 0 || threadIdx.x % 32 != 0) return;
#pragma unroll
  for (int i = 0; i < kPlaces; ++i) shared.residual_full[warp * kPlaces + i].init(1);
  fence_barrier_init();
}

// Requests the first pieces of the residual for every warp. Each lane requests the pieces of one consumer warp. One
// piece per warp is requested with each k-tile from the second on: before that, memory is busy with the operands, and
// later it is busy with stores. Each warp requests all later pieces itself.
template <typename Config>
__device__ inline void bring_first(const TensorMap& map, const GemmArgs& args, const GemmShared<Config>& shared) {
  using Traits = GemmTraits<Config>;
  const auto warp = static_cast<int32_t>(threadIdx.x) % 32;
  PersistentTileScheduler<Config> walk(args);
  int32_t k = 0, k_tiles = args.k_tiles;
  // A barrier can only distinguish a phase from the next one, so k-tiles must be waited for one after another.
  const auto wait_for_k_tile = [&] {
    if (k < k_tiles) shared.full[k % Traits::kStages].wait_briefly(k / Traits::kStages & 1);
    ++k;
  };
  wait_for_k_tile();
  for (int32_t group = 0; group < (kPingPong<Config> ? 2 : 1) && walk.valid(); ++group, walk.next()) {
    const GemmUnit unit = walk.get();
#pragma unroll 1
    for (int32_t piece = 0; piece < Traits::kResidualPlaces; ++piece) {
      wait_for_k_tile();
      const bool mine = warp < 4 * Traits::kConsumers && (!kPingPong<Config> || warp / 4 == group);
      if (mine) bring_piece<Config>(map, shared, unit, warp, piece);
      __syncwarp();
    }
    k_tiles += args.k_tiles;
  }
}

// A warp's pieces of the residual, which TMA loads into the staging buffers of D. Empty if there is no residual.
template <typename Config, bool Residual>
struct ResidualPipeline {
  static constexpr bool kBrings = false;
  __device__ ResidualPipeline(const TensorMap*, const GemmShared<Config>&) {}
  __device__ void begin(const PersistentTileScheduler<Config>&) {}
  __device__ void join(int32_t) {}
};
template <typename Config>
struct ResidualPipeline<Config, true> {
  using Traits = GemmTraits<Config>;
  static constexpr bool kBrings = true;
  static constexpr int kPieces = Traits::kResidualPieces, kPlaces = Traits::kResidualPlaces;
  static_assert(kPieces % kPlaces == 0 && (kPlaces > 1 || kPieces == 1));

  __device__ ResidualPipeline(const TensorMap* map, const GemmShared<Config>& shared)
      : map_(map), shared_(shared), warp_(warp_of_block() - 4 * Traits::kOthers) {}
  // Called when this warp begins a tile. Requests the piece for the last staging buffer, and determines the next tile.
  __device__ void begin(const PersistentTileScheduler<Config>& walk) {
    const bool asks = threadIdx.x % 32 == 0;
    if (has_next_) {
      if (asks) {
        wait_stores_read<0>();
        bring_piece<Config>(*map_, shared_, next_, warp_, kPlaces - 1);
      }
      fills_ += kPieces / kPlaces;
    }
    this_ = walk.get();
    PersistentTileScheduler<Config> ahead = walk;
    ahead.next();
    if (kPingPong<Config>) ahead.next();
    has_next_ = ahead.valid();
    if (has_next_) next_ = ahead.get();
    // Prefetches the pieces for which there is no staging buffer yet. They are loaded while the tile is being stored.
    if (asks) {
#pragma unroll
      for (int i = kPlaces; i < kPieces; ++i) {
        const PiecePlace<Config> at(this_, warp_, i);
        prefetch_box(*map_, at.col, at.row, this_.batch);
      }
    }
  }
  // Switches to the last tile of the other warpgroup. `tile` is the number of tiles that the other warpgroup had before
  // this one. All pieces of this last tile have already been requested.
  __device__ void join(int32_t tile) {
    static_assert(kPieces == kPlaces);
    warp_ ^= 4;
    fills_ = tile;
    has_next_ = false;
  }
  __device__ uint8_t* buffer(int piece) const {
    return shared_.staging + (warp_ * kPlaces + piece % kPlaces) * kGemmStagingBytes;
  }
  __device__ void take(int piece, ResidualFragments<8, 2>& fragments) const {
    shared_.residual_full[warp_ * kPlaces + piece % kPlaces].wait((fills_ + piece / kPlaces) & 1);
    fragments.load<128>(buffer(piece));
  }
  // Called by one lane after the store of a piece of D has been issued. Requests the next piece for the staging buffer
  // of the previous piece; that next piece may belong to the next tile.
  __device__ void stored(int piece) const {
    if (piece == 0) return;
    wait_stores_read<1>();
    const int to = piece - 1 + kPlaces;
    if (to < kPieces) {
      bring_piece<Config>(*map_, shared_, this_, warp_, to);
    } else if (has_next_) {
      bring_piece<Config>(*map_, shared_, next_, warp_, to - kPieces);
    }
  }

 private:
  const TensorMap* map_;
  const GemmShared<Config>& shared_;
  int32_t warp_;
  bool has_next_ = false;
  uint32_t fills_ = 0;  // loads into each staging buffer before this tile
  GemmUnit this_, next_;
};

}  // namespace heddle::tile::sm90
