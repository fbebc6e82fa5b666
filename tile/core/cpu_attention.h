// The shapes of CPU attention as plain numbers, shared by its kernel (tile/kernel/cpu/attention.h) and the scheduler.
#pragma once

#include "tile/core/shape.h"

namespace heddle::tile {

// The keys that kAttentionRows neighbouring rows attend to: [first, last), at least one. Scores of keys in
// [plain_first, plain_last) are plain.
struct AttentionKeys {
  int64_t first, plain_first, plain_last, last;
};
inline constexpr int64_t kAttentionRows = 64;
// Vectors of a panel of K^T or V.
inline constexpr int kAttentionVectors = 2;

// Problem and blocking. Rows of Q are cut into micro tiles by split_rows(). A task has `block_tiles` of them and
// processes `block_keys` keys (a multiple of a panel's) at a time.
struct AttentionShape {
  int64_t batches = 1, m = 0, n = 0, depth = 0, width = 0;
  int64_t tiles = 0, tall = 0;
  int64_t block_tiles = 1, block_keys = 0;

  constexpr int64_t m_blocks() const { return (tiles + block_tiles - 1) / block_tiles; }
  constexpr int64_t tasks() const { return batches * m_blocks(); }
  constexpr int64_t tile_row(int64_t tile, int64_t mr) const { return tile * mr - (tile > tall ? tile - tall : 0); }
};

// Offsets of the parts of a thread's scratch, in floats, each on a cache line: rows of Q; a block of K and of V in
// panels; scores and exponentials of a micro tile; results and products of a micro tile's panel; per row the greatest
// score and the sum of exponentials.
struct AttentionScratch {
  int64_t q, k, v, scores, exponentials, results, products, tops, sums, end;

  // Micro tiles of `mr` rows, panels of `nr` columns.
  constexpr AttentionScratch(const AttentionShape& s, int64_t mr, int64_t nr) {
    const int64_t rows = s.block_tiles * mr, widths = panel_count(s.width, nr) * nr;
    int64_t at = 0;
    const auto take = [&](int64_t floats) {
      const int64_t begin = at;
      at += (floats + 15) / 16 * 16;
      return begin;
    };
    q = take(rows * copied_stride(s.depth, 4));
    k = take(s.block_keys * s.depth);
    v = take(s.block_keys * widths);
    scores = take(mr * s.block_keys);
    exponentials = take(mr * copied_stride(s.block_keys, 4));
    results = take(rows * widths);
    products = take(mr * nr);
    tops = take(rows);
    sums = take(rows);
    end = at;
  }
  constexpr int64_t bytes() const { return end * 4; }
};

}  // namespace heddle::tile
