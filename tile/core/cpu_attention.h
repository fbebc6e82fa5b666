// The problem sizes of CPU attention, shared by the kernel (tile/kernel/cpu/attention.h) and the scheduler.
#pragma once

#include "tile/core/shape.h"

namespace heddle::tile {

// The range of keys [first, last) to which kAttentionRows neighbouring rows attend. The range has at least one key. The
// scores of keys in [plain_first, plain_last) are plain: the product times the scale, without a mask.
struct AttentionKeys {
  int64_t first, plain_first, plain_last, last;
};
inline constexpr int64_t kAttentionRows = 64;
// The width of a panel of K^T or V, in vectors.
inline constexpr int kAttentionVectors = 2;

// The sizes of an attention problem, and the blocking. split_rows() divides the rows of Q into micro tiles. A task
// processes `block_tiles` micro tiles, and `block_keys` keys at a time; `block_keys` is a multiple of a panel's width.
struct AttentionShape {
  int64_t batches = 1, m = 0, n = 0, depth = 0, width = 0;
  int64_t tiles = 0, tall = 0;
  int64_t block_tiles = 1, block_keys = 0;

  constexpr int64_t m_blocks() const { return (tiles + block_tiles - 1) / block_tiles; }
  constexpr int64_t tasks() const { return batches * m_blocks(); }
  constexpr int64_t tile_row(int64_t tile, int64_t mr) const { return tile * mr - (tile > tall ? tile - tall : 0); }
};

// The layout of a thread's scratch memory, as offsets in floats. Each part begins at a cache line:
//   q             the rows of Q of a task
//   k, v          a block of keys, and the values of these keys, as panels
//   scores        the scores of a micro tile
//   exponentials  the exponentials of a micro tile
//   results       O for all rows and panels of a task
//   products      the products of a micro tile with one panel
//   tops, sums    for each row: the maximum score, and the sum of exponentials
struct AttentionScratch {
  int64_t q, k, v, scores, exponentials, results, products, tops, sums, end;

  // `mr`: the rows of a micro tile. `nr`: the columns of a panel.
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
