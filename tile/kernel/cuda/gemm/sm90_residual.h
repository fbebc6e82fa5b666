// A matrix of 16-bit elements beside D on sm_90a: TMA brings its pieces to where those of D leave from.
#pragma once

#include "tile/arch/sm90/barrier.h"
#include "tile/arch/sm90/tma.h"
#include "tile/kernel/cuda/gemm/sm90_shared.h"
#include "tile/kernel/cuda/gemm/store.h"
#include "tile/kernel/cuda/gemm/tile_scheduler.h"

namespace heddle::tile::sm90 {

// Where piece number `piece` of warp `warp`'s part of a tile lies in D.
template <typename Config>
struct PiecePlace {
  int32_t row, col;
  __device__ PiecePlace(const GemmUnit& unit, int32_t warp, int32_t piece) {
    constexpr int kAcross = Config::kTileN / 64;
    const int32_t group_row = Config::kPingPong ? 0 : warp / 4 * GemmTraits<Config>::kRowsPerGroup;
    row = unit.m + group_row + piece / kAcross * 64 + warp % 4 * 16;
    col = unit.n + piece % kAcross * 64;
  }
};

// Asks for a piece of a matrix beside D, to the place that is its. It is read once: the L2 keeps the operands.
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

// Each warp that multiplies makes the barriers of its places.
template <typename Config>
__device__ inline void init_residual(const GemmShared<Config>& shared) {
  constexpr int kPlaces = GemmTraits<Config>::kResidualPlaces;
  const int32_t warp = warp_of_block() - 4 * GemmTraits<Config>::kOthers;
  if (warp < 0 || threadIdx.x % 32 != 0) return;
#pragma unroll
  for (int i = 0; i < kPlaces; ++i) shared.residual_full[warp * kPlaces + i].init(1);
  fence_barrier_init();
}

// The first pieces of every warp, by as many lanes of a warp as there are warps that multiply: one with each k-tile
// from the second on, since before all memory is busy with the operands, and later with what is stored. Afterwards each
// warp asks for its own.
template <typename Config>
__device__ inline void bring_first(const TensorMap& map, const GemmArgs& args, const GemmShared<Config>& shared) {
  using Traits = GemmTraits<Config>;
  const auto warp = static_cast<int32_t>(threadIdx.x) % 32;
  PersistentTileScheduler<Config> walk(args);
  int32_t k = 0, k_tiles = args.k_tiles;
  // A barrier tells a phase from the next: k-tiles are waited for one after another.
  const auto wait_for_k_tile = [&] {
    if (k < k_tiles) shared.full[k % Traits::kStages].wait_briefly(k / Traits::kStages & 1);
    ++k;
  };
  wait_for_k_tile();
  for (int32_t group = 0; group < (Config::kPingPong ? 2 : 1) && walk.valid(); ++group, walk.next()) {
    const GemmUnit unit = walk.get();
#pragma unroll 1
    for (int32_t piece = 0; piece < Traits::kResidualPlaces; ++piece) {
      wait_for_k_tile();
      const bool mine = warp < 4 * Traits::kConsumers && (!Config::kPingPong || warp / 4 == group);
      if (mine) bring_piece<Config>(map, shared, unit, warp, piece);
      __syncwarp();
    }
    k_tiles += args.k_tiles;
  }
}

// Nothing, or the pieces of a matrix beside D that a warp has TMA bring to where those of D leave from.
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
  // A tile of this warp begins: asks for what the last place will hold, and finds the next tile.
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
    if (Config::kPingPong) ahead.next();
    has_next_ = ahead.valid();
    if (has_next_) next_ = ahead.get();
    // What has no place yet will come while the tile is stored.
    if (asks) {
#pragma unroll
      for (int i = kPlaces; i < kPieces; ++i) {
        const PiecePlace<Config> at(this_, warp_, i);
        prefetch_box(*map_, at.col, at.row, this_.batch);
      }
    }
  }
  // From now on for the last tile of the other warpgroup, its tile number `tile`: all of its pieces are on their way.
  __device__ void join(int32_t tile) {
    static_assert(kPieces == kPlaces);
    warp_ ^= 4;
    fills_ = tile;
    has_next_ = false;
  }
  __device__ uint8_t* buffer(int piece) const {
    return shared_.staging + (warp_ * kPlaces + piece % kPlaces) * kGemmStagingBytes;
  }
  __device__ void take(int piece, uint32_t (&pair)[8][2]) const {
    shared_.residual_full[warp_ * kPlaces + piece % kPlaces].wait((fills_ + piece / kPlaces) & 1);
    load_fragments(pair, buffer(piece));
  }
  // By one lane: the piece of D is on its way; the place of the one before takes its next piece, perhaps of the next
  // tile.
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
  uint32_t fills_ = 0;  // of each place, before this tile
  GemmUnit this_, next_;
};

}  // namespace heddle::tile::sm90
