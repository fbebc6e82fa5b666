// Shared by the CUDA attention kernels and the scheduler: the argument block and the layout of shared memory.
#pragma once

#include <stdint.h>

#include "tile/core/cuda_gemm.h"

namespace heddle::tile {

// The coordinate of a batch (a head of an image, say) in one of the two outer dimensions of an operand's tensor map:
// batch / a % b. b is 1 if the operand does not have that dimension.
struct AttentionCoordinate {
  GemmDivisor by, by_extent;  // a, b
  int32_t extent;             // b

  static TILE_HD constexpr AttentionCoordinate of(int32_t divisor, int32_t extent) {
    return {GemmDivisor::of(divisor), GemmDivisor::of(extent), extent};
  }
  TILE_HD constexpr int32_t at(int32_t batch) const {
    const int32_t of_all = by.divide(batch);
    return of_all - by_extent.divide(of_all) * extent;
  }
};
struct AttentionPlace {
  AttentionCoordinate inner, outer;
};
static_assert(sizeof(AttentionPlace) == 40);

// The index of a tile of keys as a function of the row tile and the batch's length: (step * tile + by_length * length +
// offset) / tile_n, clamped to [low, high].
struct AttentionBound {
  int32_t step, by_length, offset, low, high;

  TILE_HD constexpr int32_t at(int32_t tile, int32_t length, int32_t tile_n) const {
    const int32_t key = step * tile + by_length * length + offset, bound = key < 0 ? 0 : key / tile_n;
    return bound < low ? low : bound > high ? high : bound;
  }
};

// O = softmax(scores(Q K^T)) V for each batch; Q has m rows, K and V have n. A block processes one unit at a time: a
// row tile of a batch, or one of `splits` parts of that tile's keys. If V and O have more columns than a block holds,
// each batch counts once for each panel of columns (Config::kPanels), side by side; units of these panels repeat the
// product of Q and K. Units are ordered by sections of batches. In a section, the first row tile (`descending`: the
// last) of every batch comes first, then the next row tile of every batch, and so on.
struct AttentionArgs {
  // With splits, the sums over each part of the keys: [row tile of all batches][64 rows][split], each with
  // attention_partial_floats() floats for every thread.
  float* partial;
  uint32_t* counters;   // zero before and after: attention_counters()
  int32_t m, n, width;  // width: of V and O, all panels
  int32_t tiles_m;      // row tiles per batch
  int32_t units;        // of all batches and panels
  int32_t splits;
  int32_t section, last_section, sections;  // batches per section, batches in the last one, number of sections
  int32_t descending;
  float factor, scale;  // plain scores = factor * products; scale = factor * log2(e)
  AttentionBound first, plain_first, plain_last, last;
  int32_t least_length, most_length;  // the bounds hold for these lengths; others compute all keys, none as plain
  AttentionPlace q, k, v;
  GemmDivisor by_splits, by_section, by_batches, by_last;  // units of a section without splits; batches of one
};
static_assert(sizeof(AttentionArgs) == 304);

// A table of the pages of a pool that hold each batch's keys. Each sequence has a line of entries, one for each page.
// `heads` consecutive batches belong to one sequence.
struct AttentionPages {
  const void* table;
  int64_t offset, sequence, entry;  // offset of the first entry; strides between sequences and between entries
  int32_t heads;
  int32_t entries;  // per sequence
  int32_t pool;     // pages in the pool
  // Nonzero: entries are gather indices, so negative ones count from the end of the pool, and ones beyond it are
  // clamped to the nearest page. Zero: such entries name no page.
  int32_t clamps;
  GemmDivisor by_heads;
};
static_assert(sizeof(AttentionPages) == 56);

// Rows of Q per group of four warps, 16 for each warp.
inline constexpr int kAttentionGroupRows = 64;

// Floats per thread: its share of O, and the maximum and sum of each of its two rows.
TILE_HD constexpr int attention_partial_floats(int width) {
  return width / 2 + 4;
}
// Counters: the next unit, the blocks that have found none left. After them, for each 64 rows, the finished parts.
inline constexpr int kAttentionWalkCounters = 2;

// A unit of work, as the producer warp hands it to the consumers. It covers the tiles of keys [first, last), of which
// [plain_first, plain_last) have plain scores. If a length leaves fewer tiles than there are parts, some parts have no
// tiles.
struct alignas(16) AttentionUnit {
  int32_t number, batch, row, split;  // number < 0: there is none
  int32_t first, plain_first, plain_last, last;
  int32_t column;  // of V and O: the panel's first
};

// Registers per thread: at entry (from 65,536 of an SM, in multiples of 8), then in the producer warpgroup, which gives
// up most of its registers, and in the consumers. The producer needs more if it asks a counter for units (`asks`).
struct AttentionBudget {
  int entry, producer, consumer;
};
TILE_HD constexpr AttentionBudget attention_budget(int consumers, int blocks, bool asks) {
  constexpr int kMost = 240;
  const int threads = 128 * (consumers + 1) * blocks;
  const int entry = 65536 / threads / 8 * 8 < 256 ? 65536 / threads / 8 * 8 : 256;
  const int producer = consumers == 3 || asks ? 32 : 24;
  const int consumer = (entry * (consumers + 1) - producer) / consumers / 8 * 8;
  if (consumers == 1 && entry >= kMost) return {entry, entry, entry};
  return {entry, producer, consumer < kMost ? consumer : kMost};
}

// A tile of 16-bit elements in shared memory, as TMA writes it and wgmma reads it. A piece spans 64 elements along the
// dimension that is contiguous in memory and has a row of 128 bytes for each element along the other one.
struct AttentionPieces {
  int count, rows;
  TILE_HD constexpr int piece_bytes() const { return rows * kGemmRowBytes; }
  TILE_HD constexpr int bytes() const { return count * piece_bytes(); }
};
TILE_HD constexpr AttentionPieces attention_pieces(int rows, int depth, bool along_depth) {
  constexpr int kPiece = kGemmRowBytes / 2;
  const int along = along_depth ? depth : rows, across = along_depth ? rows : depth;
  return {(along + kPiece - 1) / kPiece, across};
}

// Lines of the TMA box that loads a tile of `lines`, a multiple of 16. TMA boxes have at most 256 lines.
TILE_HD constexpr int attention_box_lines(int lines) {
  constexpr int kMost = 256, kLines = 16;
  int boxes = (lines + kMost - 1) / kMost;
  while (lines % (boxes * kLines) != 0) ++boxes;
  return lines / boxes;
}

// Bytes of Q's tile, which also stages the results on their way to memory when Q is no longer needed.
TILE_HD constexpr int attention_q_bytes(int tile_m, int depth, int width) {
  const int q = attention_pieces(tile_m, depth, true).bytes(), o = attention_pieces(tile_m, width, true).bytes();
  return q > o ? q : o;
}
// Bytes of the queue of units for the consumers, and of a word per warpgroup by which one thread informs the others.
TILE_HD constexpr int attention_unit_bytes(int q_stages) {
  return q_stages * static_cast<int>(sizeof(AttentionUnit)) + 16;
}
TILE_HD constexpr int attention_shared_bytes(int tile_m, int tile_n, int depth, int width, bool k_along_depth,
                                             bool v_along_width, int q_stages, int stages) {
  const int ring =
      attention_pieces(tile_n, depth, k_along_depth).bytes() + attention_pieces(width, tile_n, !v_along_width).bytes();
  return 1024 + q_stages * attention_q_bytes(tile_m, depth, width) + stages * ring + (2 * q_stages + 4 * stages) * 8 +
         attention_unit_bytes(q_stages);
}

// For mma.sync (sm80.h), a tile is stored in slices of this many elements along the dimension that is contiguous in
// memory, of which the tile has `length`. `element`: bytes of an element, here and below.
TILE_HD constexpr int attention_slice(int length, int element) {
  int slice = kGemmRowBytes / element;
  while (slice > 16 && length % slice != 0) slice /= 2;
  return slice;
}
// 16-row blocks per warp, in a block of 64 * `groups` rows. With two, a warp reads each fragment of K and V once for
// both, but needs twice the registers.
TILE_HD constexpr int attention_blocks_m(int groups, int depth, int width) {
  return groups == 4 || (groups == 2 && depth + width <= 192) ? 2 : 1;
}
TILE_HD constexpr int mma_attention_threads(int groups, int depth, int width) {
  return 128 * groups / attention_blocks_m(groups, depth, width);
}
// Few rows (a decoding step): all `warps` warps process the same 16 rows. Each warp has its own tiles of keys in its
// own ring, and finally leaves its sums in the memory of the rings.
inline constexpr int kAttentionFewRows = 16;
TILE_HD constexpr int few_rows_ring_bytes(int tile_n, int depth, int width, int stages) {
  constexpr int kElement = 2;
  return stages * tile_n * (depth + width) * kElement;
}
TILE_HD constexpr int few_rows_sums_bytes(int width) {
  return 32 * attention_partial_floats(width) * static_cast<int>(sizeof(float));
}
// True if a warp of `blocks_m` 16-row blocks keeps Q in registers. Otherwise it reads Q again for each tile of keys. It
// always does so for elements in two parts (split f32).
TILE_HD constexpr bool attention_keeps_queries(int depth, int blocks_m, int element) {
  return depth * blocks_m * element <= 256;
}
// Bytes of Q's tile, which also stages the results on their way to memory; below, of all shared memory.
TILE_HD constexpr int mma_attention_q_bytes(int tile_m, int depth, int width, int element) {
  const int pieces = (width * element + kGemmRowBytes - 1) / kGemmRowBytes;
  const int q = tile_m * depth * element, o = tile_m * pieces * kGemmRowBytes;
  return q > o ? q : o;
}
TILE_HD constexpr int mma_attention_shared_bytes(int tile_m, int tile_n, int depth, int width, int stages,
                                                 int element) {
  return mma_attention_q_bytes(tile_m, depth, width, element) + stages * tile_n * (depth + width) * element +
         attention_unit_bytes(0);
}
TILE_HD constexpr int few_rows_shared_bytes(int warps, int tile_n, int depth, int width, int stages) {
  return mma_attention_q_bytes(kAttentionFewRows, depth, width, 2) +
         warps * few_rows_ring_bytes(tile_n, depth, width, stages) + attention_unit_bytes(0);
}

}  // namespace heddle::tile
