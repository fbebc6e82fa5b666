// The thread of an attention block that finds units and brings their tiles to shared memory (sm90.h).
#pragma once

#include "tile/kernel/cuda/attention/tile.h"
#include "tile/kernel/cuda/attention/units.h"
#include "tile/kernel/cuda/gemm/tile_scheduler.h"

namespace heddle::tile::sm90 {

using cuda::attention_unit;
using cuda::first_column;
using cuda::has_keys;

// The units of a block: every so many, or (kDynamic) the next one that nobody has, which evens out units of different
// lengths. Called by one thread.
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
  // When no unit is left: the last block to find none leaves the counters as they were.
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

// A tile, for a batch, from row `row` and element `at` of the depth on.
template <typename Tile>
__device__ inline void load_tile(const TensorMap& map, const AttentionPlace& place, Barrier& full, uint8_t* to,
                                 int32_t batch, int32_t row, int32_t at) {
  full.arrive_expect(Tile::kPieces.bytes());
  Tile::load(map, full, to, row, at, place.inner.at(batch), place.outer.at(batch));
}

// One thread fills Q's buffers and the rings. Keys come from the last tile to the first, each tile before the values of
// the one before it: their slot is free first, and their product is wanted first.
template <typename Config, typename Length>
__device__ inline void load_tiles(const TensorMap& map_q, const TensorMap& map_k, const TensorMap& map_v,
                                  const AttentionArgs& args, const Length& length,
                                  const AttentionShared<Config>& shared) {
  using Traits = AttentionTraits<Config>;
  PipelineState<Traits::kQStages> at_q;
  PipelineState<Traits::kStages> at_k, at_v;
  int32_t batch = 0;
  const auto load_keys = [&](int32_t tile) {
    shared.k_empty[at_k.stage].wait(at_k.phase ^ 1);
    load_tile<typename Traits::K>(map_k, args.k, shared.k_full[at_k.stage], shared.k + at_k.stage * Traits::kKBytes,
                                  batch, tile * Traits::kTileN, 0);
    at_k.step();
  };
  AttentionWalk<Config> walk(args);
  for (; walk.valid(); walk.next()) {
    const AttentionUnit unit = attention_unit<Config>(args, length, walk.number());
    batch = unit.batch;
    if (has_keys<Config>(unit)) load_keys(unit.last - 1);
    shared.q_empty[at_q.stage].wait(at_q.phase ^ 1);
    shared.units[at_q.stage] = unit;
    load_tile<typename Traits::Q>(map_q, args.q, shared.q_full[at_q.stage], shared.q + at_q.stage * Traits::kQBytes,
                                  batch, unit.row, 0);
    at_q.step();
    for (int32_t tile = unit.last - 1; tile >= unit.first; --tile) {
      if (tile > unit.first) load_keys(tile - 1);
      shared.v_empty[at_v.stage].wait(at_v.phase ^ 1);
      load_tile<typename Traits::V>(map_v, args.v, shared.v_full[at_v.stage], shared.v + at_v.stage * Traits::kVBytes,
                                    batch, first_column<Config>(unit), tile * Traits::kTileN);
      at_v.step();
    }
  }
  walk.finish();
  shared.q_empty[at_q.stage].wait(at_q.phase ^ 1);
  shared.units[at_q.stage].number = -1;
  shared.q_full[at_q.stage].arrive();
}

}  // namespace heddle::tile::sm90
