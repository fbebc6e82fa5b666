// What the attention kernel for CUDA and the scheduler agree on: the argument block and the use of shared memory.
#pragma once

#include <stdint.h>

#include "tile/core/cuda_gemm.h"

namespace heddle::tile {

// Where an operand lies for a batch (a head of an image, say): at (batch / a % b) of each of the two outer dimensions
// of its tensor map. b is 1 where the operand does not have that dimension.
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

// A tile of keys as a function of the tile of rows and of the batch's length: (step * tile + by_length * length +
// offset) / keys of a tile, within [low, high].
struct AttentionBound {
  int32_t step, by_length, offset, low, high;

  TILE_HD constexpr int32_t at(int32_t tile, int32_t length, int32_t tile_n) const {
    const int32_t key = step * tile + by_length * length + offset, bound = key < 0 ? 0 : key / tile_n;
    return bound < low ? low : bound > high ? high : bound;
  }
};

// O = softmax(scores(Q K^T)) V for each batch; Q has m rows, K and V have n. A unit is what a block does at a time: a
// tile of rows of a batch, or one of `splits` parts of its keys. Where V and O have more columns than a block holds,
// each batch counts once for each panel of columns (Config::kPanels), side by side: such units multiply the same Q and
// K. Units go through sections of batches: the first rows (`descending`: the last) of all batches of a section, the
// next ones, and so on.
struct AttentionArgs {
  // Splits: sums of each part of the keys, [tile of rows of all batches][64 rows][split], of each thread
  // attention_partial_floats().
  float* partial;
  uint32_t* counters;   // zero before and after: attention_counters()
  int32_t m, n, width;  // width: of V and O, all panels
  int32_t tiles_m;      // row tiles of a batch
  int32_t units;        // of all batches and panels
  int32_t splits;
  int32_t section, last_section, sections;  // batches of a section, of the last one; how many there are
  int32_t descending;
  float factor, scale;  // plain scores are products times this; times log2(e)
  AttentionBound first, plain_first, plain_last, last;
  int32_t least_length, most_length;  // of which bounds hold; of other lengths all keys are computed, none as plain
  AttentionPlace q, k, v;
  GemmDivisor by_splits, by_section, by_batches, by_last;  // units of a section without splits; batches of one
};
static_assert(sizeof(AttentionArgs) == 304);

// Which pages of a pool have the keys of each batch, as a table says it: a sequence has a line of entries, one for each
// page. Batches are `heads` of each sequence, side by side.
struct AttentionPages {
  const void* table;
  int64_t offset, sequence, entry;  // of the first entry; from one sequence's to the next one's, from entry to entry
  int32_t heads;
  int32_t entries;  // of a sequence
  int32_t pool;     // pages that there are
  // Whether entries are those of a gather: negative ones count from the end of the pool, others beyond it mean the
  // nearest page. Else they name no page.
  int32_t clamps;
  GemmDivisor by_heads;
};
static_assert(sizeof(AttentionPages) == 56);

// Rows of Q that four warps have, 16 each.
inline constexpr int kAttentionGroupRows = 64;

// A thread's share of O and the maximum and sum of each of its two rows.
TILE_HD constexpr int attention_partial_floats(int width) {
  return width / 2 + 4;
}
// Which unit is next, how many blocks have found none; then how many parts of each 64 rows are done.
inline constexpr int kAttentionWalkCounters = 2;

// What a block does at a time, as the warp that loads hands it to those that multiply. Keys in tiles: those of
// [first, last), of which [plain_first, plain_last) have plain scores. Where a length leaves fewer tiles than there
// are parts, some parts have none.
struct alignas(16) AttentionUnit {
  int32_t number, batch, row, split;  // number < 0: there is none
  int32_t first, plain_first, plain_last, last;
  int32_t column;  // of V and O: the panel's first
};

// Registers of a thread: at entry (of 65,536 of an SM, in multiples of 8), and what warpgroups have when the one that
// loads has given up most of its own: it needs more where it asks a counter for units (`dynamic`).
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

// A tile of 16-bit elements in shared memory as TMA writes it and wgmma reads it: pieces of 64 elements
// along the dimension that is contiguous in memory, a row of 128 bytes for each element along the other one.
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

// The lines of a box by which TMA loads a tile of so many, a multiple of 16: it has no larger boxes than of 256.
TILE_HD constexpr int attention_box_lines(int lines) {
  constexpr int kMost = 256, kLines = 16;
  int boxes = (lines + kMost - 1) / kMost;
  while (lines % (boxes * kLines) != 0) ++boxes;
  return lines / boxes;
}

// Of Q's tile, in which the results wait for their way to memory when Q is no longer needed.
TILE_HD constexpr int attention_q_bytes(int tile_m, int depth, int width) {
  const int q = attention_pieces(tile_m, depth, true).bytes(), o = attention_pieces(tile_m, width, true).bytes();
  return q > o ? q : o;
}
// Units on their way to the warpgroups that multiply, and what one of their threads tells the others.
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

// By mma.sync (sm80.h) tiles lie in slices of so many elements of the dimension in which memory is contiguous: `length`
// is how many a tile has of it. `element`: bytes of one, here and below.
TILE_HD constexpr int attention_slice(int length, int element) {
  int slice = kGemmRowBytes / element;
  while (slice > 16 && length % slice != 0) slice /= 2;
  return slice;
}
// How many times 16 rows a warp has of a block's `groups` times 64: fragments of K and V are read once for two, which
// need twice the registers.
TILE_HD constexpr int attention_blocks_m(int groups, int depth, int width) {
  return groups == 4 || (groups == 2 && depth + width <= 192) ? 2 : 1;
}
TILE_HD constexpr int mma_attention_threads(int groups, int depth, int width) {
  return 128 * groups / attention_blocks_m(groups, depth, width);
}
// Few rows (a step of decoding): `warps` warps have the same 16 rows, each its own tiles of keys in a ring of its own.
// Each leaves its sums where the rings were.
inline constexpr int kAttentionFewRows = 16;
TILE_HD constexpr int few_rows_ring_bytes(int tile_n, int depth, int width, int stages) {
  constexpr int kElement = 2;
  return stages * tile_n * (depth + width) * kElement;
}
TILE_HD constexpr int few_rows_sums_bytes(int width) {
  return 32 * attention_partial_floats(width) * static_cast<int>(sizeof(float));
}
// Whether a warp with so many times 16 rows has Q in registers, else it reads it again for each tile of keys, as it
// does where elements have two parts.
TILE_HD constexpr bool attention_keeps_queries(int depth, int blocks_m, int element) {
  return depth * blocks_m * element <= 256;
}
// Of Q's tile, in which results wait for their way to memory, and of all.
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
