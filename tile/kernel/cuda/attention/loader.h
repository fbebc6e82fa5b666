// The thread of an attention block (sm90.h) that determines the block's units of work and loads their tiles into shared
// memory.
#pragma once

#include "tile/kernel/cuda/attention/pages.h"
#include "tile/kernel/cuda/attention/tile.h"
#include "tile/kernel/cuda/attention/units.h"
#include "tile/kernel/cuda/gemm/tile_scheduler.h"

namespace heddle::tile::sm90 {

using cuda::attention_unit;
using cuda::first_column;
using cuda::has_keys;

// Iterates over the units of a block. If kDynamic, the block claims the next unclaimed unit each time, which balances
// units of different lengths. Otherwise, the numbers of its units have a constant stride. Called by one thread.
template <typename Config>
class AttentionWalk {
 public:
  __device__ explicit AttentionWalk(const AttentionArgs& args)
      : args_(args), number_(static_cast<int32_t>(blockIdx.x)) {}

  __device__ bool valid() const { return number_ < args_.units; }
  __device__ int32_t number() const { return number_; }
  __device__ void next() {
    if constexpr (Config::kDynamic) {
      number_ = static_cast<int32_t>(gridDim.x + atomicAdd(&args_.counters[0], 1u));
    } else {
      number_ += static_cast<int32_t>(gridDim.x);
    }
  }
  // Must be called when no unit is left. The last block to call it resets the counters to zero.
  __device__ void finish() const {
    if constexpr (Config::kDynamic) {
      __threadfence();
      if (atomicAdd(&args_.counters[1], 1u) + 1 != gridDim.x) return;
      atomicExch(&args_.counters[0], 0u);
      atomicExch(&args_.counters[1], 0u);
    }
  }

 private:
  const AttentionArgs& args_;
  int32_t number_;
};

// Loads the tile of a batch that begins at row `row` and at depth element `at`.
template <typename Tile>
__device__ inline void load_tile(const TensorMap& map, const AttentionPlace& place, Barrier& full, uint8_t* to,
                                 int32_t batch, int32_t row, int32_t at) {
  full.arrive_expect(Tile::kPieces.bytes());
  Tile::load(map, full, to, row, at, place.inner.at(batch), place.outer.at(batch));
}

// Loads tiles of keys and values of one batch. If keys are stored in pages, a tile may span several pages; it is then
// loaded page by page. Pages are the outer dimension of the tensor maps.
template <typename Config, typename Pages>
class KeyLoader {
  using Traits = AttentionTraits<Config>;

 public:
  __device__ KeyLoader(const AttentionArgs& args, const Pages& pages, int32_t batch)
      : args_(args), pages_(pages, batch), batch_(batch) {}

  // `wait` waits until the slot is free. `column` is the first column of the values.
  template <typename Wait>
  __device__ void load_keys(const TensorMap& map, Barrier& full, uint8_t* to, int32_t tile, Wait wait) const {
    load<typename Traits::K, true>(map, args_.k, full, to, tile, 0, wait);
  }
  template <typename Wait>
  __device__ void load_values(const TensorMap& map, Barrier& full, uint8_t* to, int32_t tile, int32_t column,
                              Wait wait) const {
    load<typename Traits::V, false>(map, args_.v, full, to, tile, column, wait);
  }

 private:
  template <typename Tile, bool IsKeys, typename Wait>
  __device__ void load(const TensorMap& map, const AttentionPlace& place, Barrier& full, uint8_t* to, int32_t tile,
                       int32_t column, Wait wait) const {
    constexpr int kCount = cuda::kPagesOfTile<Config>;
    int32_t pages[kCount];
    pages_.read(pages, tile);  // overlaps with waiting for the slot
    wait();
    full.arrive_expect(Tile::kPieces.bytes());
    const int32_t key = pages_.first_key(tile), inner = place.inner.at(batch_);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      Tile::load(map, full, to + i * cuda::page_keys<Config> * kGemmRowBytes, IsKeys ? key : column, IsKeys ? 0 : key,
                 inner, pages[i]);
    }
  }

  const AttentionArgs& args_;
  const cuda::PagesOfBatch<Config, Pages> pages_;
  const int32_t batch_;
};
template <typename Config>
class KeyLoader<Config, cuda::NoPages> {
  using Traits = AttentionTraits<Config>;

 public:
  __device__ KeyLoader(const AttentionArgs& args, const cuda::NoPages&, int32_t batch) : args_(args), batch_(batch) {}

  template <typename Wait>
  __device__ void load_keys(const TensorMap& map, Barrier& full, uint8_t* to, int32_t tile, Wait wait) const {
    wait();
    load_tile<typename Traits::K>(map, args_.k, full, to, batch_, tile * Traits::kTileN, 0);
  }
  template <typename Wait>
  __device__ void load_values(const TensorMap& map, Barrier& full, uint8_t* to, int32_t tile, int32_t column,
                              Wait wait) const {
    wait();
    load_tile<typename Traits::V>(map, args_.v, full, to, batch_, column, tile * Traits::kTileN);
  }

 private:
  const AttentionArgs& args_;
  const int32_t batch_;
};

// Fills the buffers of Q and the rings of K and V; runs in one thread. Tiles are loaded from the last one to the first
// one. The keys of tile t - 1 are loaded before the values of tile t, because the slot for the keys becomes free
// earlier and the product with the keys is needed earlier.
template <typename Config, typename Length, typename Pages>
__device__ inline void load_tiles(const TensorMap& map_q, const TensorMap& map_k, const TensorMap& map_v,
                                  const AttentionArgs& args, const Length& length, const Pages& pages,
                                  const AttentionShared<Config>& shared) {
  using Traits = AttentionTraits<Config>;
  PipelineState<Traits::kQStages> at_q;
  PipelineState<Traits::kStages> at_k, at_v;
  AttentionWalk<Config> walk(args);
  for (; walk.valid(); walk.next()) {
    const AttentionUnit unit = attention_unit<Config>(args, length, walk.number());
    const KeyLoader<Config, Pages> loader(args, pages, unit.batch);
    const auto load_keys = [&](int32_t tile) {
      loader.load_keys(map_k, shared.k_full[at_k.stage], shared.k + at_k.stage * Traits::kKBytes, tile,
                       [&] { shared.k_empty[at_k.stage].wait(at_k.phase ^ 1); });
      at_k.step();
    };
    if (has_keys<Config>(unit)) load_keys(unit.last - 1);
    shared.q_empty[at_q.stage].wait(at_q.phase ^ 1);
    shared.units[at_q.stage] = unit;
    load_tile<typename Traits::Q>(map_q, args.q, shared.q_full[at_q.stage], shared.q + at_q.stage * Traits::kQBytes,
                                  unit.batch, unit.row, 0);
    at_q.step();
    for (int32_t tile = unit.last - 1; tile >= unit.first; --tile) {
      if (tile > unit.first) load_keys(tile - 1);
      loader.load_values(map_v, shared.v_full[at_v.stage], shared.v + at_v.stage * Traits::kVBytes, tile,
                         first_column<Config>(unit), [&] { shared.v_empty[at_v.stage].wait(at_v.phase ^ 1); });
      at_v.step();
    }
  }
  walk.finish();
  shared.q_empty[at_q.stage].wait(at_q.phase ^ 1);
  shared.units[at_q.stage].number = -1;
  shared.q_full[at_q.stage].arrive();
}

}  // namespace heddle::tile::sm90
