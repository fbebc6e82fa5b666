// Computes the rows and keys of an attention unit (for sm80.h and sm90.h).
#pragma once

#include "tile/core/cuda_attention.h"

namespace heddle::tile::cuda {

// The Length of kernels without per-batch sequence lengths.
struct NoLength {};

// Sets the tiles of keys for a tile of rows, given the sequence length of its batch.
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

// Sets the batch, rows and columns of a unit. `place` is the unit's number, not counting splits of the keys. Returns
// the index of the tile of rows.
template <typename Config>
__device__ inline int32_t set_rows(AttentionUnit& u, const AttentionArgs& args, int32_t place) {
  const int32_t section = args.by_section.divide(place), rest = place - section * args.section * args.tiles_m;
  const bool is_last = section == args.sections - 1;
  const int32_t order = (is_last ? args.by_last : args.by_batches).divide(rest);
  const int32_t panel = section * args.section + rest - order * (is_last ? args.last_section : args.section);
  u.batch = panel / Config::kPanels;
  u.column = panel % Config::kPanels * Config::kWidth;
  const int32_t tile = args.descending != 0 ? args.tiles_m - 1 - order : order;
  u.row = tile * kAttentionGroupRows * Config::kConsumers;
  return tile;
}

template <typename Config, typename Length>
__device__ inline AttentionUnit attention_unit(const AttentionArgs& args, const Length& length, int32_t number) {
  AttentionUnit u;
  u.number = number;
  int32_t place = number;
  u.split = 0;
  if constexpr (kSplitsKeys<Config>) {
    place = args.by_splits.divide(number);
    u.split = number - place * args.splits;
  }
  const int32_t tile = set_rows<Config>(u, args, place);
  set_keys<Config>(u, args, length, tile);
  if constexpr (kSplitsKeys<Config>) {
    const int32_t count = u.last - u.first, first = u.first;
    u.first = first + args.by_splits.divide(count * u.split);
    u.last = first + args.by_splits.divide(count * (u.split + 1));
  }
  // If there are no plain tiles, their bounds may be outside the unit's tiles, so they are clamped.
  const auto within = [&](int32_t x) { return x < u.first ? u.first : x > u.last ? u.last : x; };
  u.plain_first = within(u.plain_first), u.plain_last = within(u.plain_last);
  return u;
}

// Returns the first column of V and O that the unit computes.
template <typename Config>
__device__ inline int32_t first_column(const AttentionUnit& unit) {
  if constexpr (Config::kPanels == 1) return 0;
  return unit.column;
}

// True if the unit has keys. If a sequence has fewer tiles of keys than splits, some units have none.
template <typename Config>
__device__ inline bool has_keys(const AttentionUnit& unit) {
  if constexpr (kSplitsKeys<Config> && Config::kLength) return unit.first < unit.last;
  return true;
}

}  // namespace heddle::tile::cuda
