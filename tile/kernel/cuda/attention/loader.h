// The thread of an attention block that finds units and brings their tiles to shared memory (sm90.h).
#pragma once

#include "tile/kernel/cuda/attention/tile.h"
#include "tile/kernel/cuda/gemm/tile_scheduler.h"

namespace heddle::tile::sm90 {

// For kernels in which no length of a batch bounds its keys.
struct NoLength {};

// The tiles of keys of a tile of rows, by the length of its batch.
template <typename Config, typename Length>
__device__ inline void set_keys(AttentionUnit& u, const AttentionArgs& args, const Length& length, int32_t tile) {
  constexpr int kTileN = Config::kTileN;
  int32_t of_batch = 0;
  if constexpr (Config::kLength) {
    float x[1] = {0};
    length(x, u.batch, 0, 0, 1);
    const bool is_known = x[0] >= static_cast<float>(args.least_length) && x[0] <= static_cast<float>(args.most_length);
    if (!is_known) {
      u.first = u.plain_first = u.plain_last = 0, u.last = (args.n + kTileN - 1) / kTileN;
      return;
    }
    of_batch = static_cast<int32_t>(x[0]);
  }
  u.first = args.first.at(tile, of_batch, kTileN), u.last = args.last.at(tile, of_batch, kTileN);
  u.plain_first = args.plain_first.at(tile, of_batch, kTileN);
  u.plain_last = args.plain_last.at(tile, of_batch, kTileN);
}

// Which rows of which batch the unit at a place has, without splits; gives the tile of rows.
template <typename Config>
__device__ inline int32_t set_rows(AttentionUnit& u, const AttentionArgs& args, int32_t place) {
  const int32_t section = args.by_section.divide(place), rest = place - section * args.section * args.tiles_m;
  const bool is_last = section == args.sections - 1;
  const int32_t order = (is_last ? args.by_last : args.by_batches).divide(rest);
  u.batch = section * args.section + rest - order * (is_last ? args.last_section : args.section);
  const int32_t tile = args.descending != 0 ? args.tiles_m - 1 - order : order;
  u.row = tile * AttentionTraits<Config>::kTileM;
  return tile;
}

template <typename Config, typename Length>
__device__ inline AttentionUnit attention_unit(const AttentionArgs& args, const Length& length, int32_t number) {
  AttentionUnit u;
  u.number = number;
  int32_t place = number;
  u.split = 0;
  if constexpr (Config::kSplit) {
    place = args.by_splits.divide(number);
    u.split = number - place * args.splits;
  }
  const int32_t tile = set_rows<Config>(u, args, place);
  set_keys<Config>(u, args, length, tile);
  if constexpr (Config::kSplit) {
    const int32_t count = u.last - u.first, first = u.first;
    u.first = first + args.by_splits.divide(count * u.split);
    u.last = first + args.by_splits.divide(count * (u.split + 1));
  }
  if constexpr (Config::kSplit || Config::kLength) {
    const auto within = [&](int32_t x) { return x < u.first ? u.first : x > u.last ? u.last : x; };
    u.plain_first = within(u.plain_first), u.plain_last = within(u.plain_last);
  }
  return u;
}

// Parts of few keys may have none.
template <typename Config>
__device__ inline bool has_keys(const AttentionUnit& unit) {
  if constexpr (Config::kSplit && Config::kLength) return unit.first < unit.last;
  return true;
}

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
                                    batch, 0, tile * Traits::kTileN);
      at_v.step();
    }
  }
  walk.finish();
  shared.q_empty[at_q.stage].wait(at_q.phase ^ 1);
  shared.units[at_q.stage].number = -1;
  shared.q_full[at_q.stage].arrive();
}

}  // namespace heddle::tile::sm90
