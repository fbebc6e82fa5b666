// The argument block and the shared-memory layout of the CUDA attention kernels, for the kernels and the scheduler.
#pragma once

#include <stdint.h>

#include "tile/core/cuda_gemm.h"

namespace heddle::tile {

// Maps a batch index (for example, the index of a head of an image) to a coordinate in one of the two outer dimensions
// of an operand's tensor map: batch / a % b. If the operand does not have that dimension, b is 1.
struct AttentionCoordinate {
  GemmDivisor by, by_extent;  // divisors a and b
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

// The index of a tile of keys as a function of the row tile's index and the batch's length: (step * tile + by_length *
// length + offset) / tile_n, clamped to [low, high].
struct AttentionBound {
  int32_t step, by_length, offset, low, high;

  TILE_HD constexpr int32_t at(int32_t tile, int32_t length, int32_t tile_n) const {
    const int32_t key = step * tile + by_length * length + offset, bound = key < 0 ? 0 : key / tile_n;
    return bound < low ? low : bound > high ? high : bound;
  }
};

// The source of the scores of a tile of keys. Plain scores are products times AttentionArgs::factor.
enum class AttentionScores : int32_t {
  kPlain,     // all scores are plain
  kComputed,  // a functor computes all scores
  kMixed,     // the functor computes the scores of some tiles
};
// Whether a unit has only a part of the keys, and what adds the results of the parts.
enum class AttentionSplit : int32_t {
  kNone,
  kLastBlock,  // the last block of each group of rows adds the parts
  kCombine,    // attention_combine() (combine.h) adds the parts
};
template <typename Config>
inline constexpr bool kComputesScores = Config::kScores != AttentionScores::kPlain;
template <typename Config>
inline constexpr bool kSplitsKeys = Config::kSplit != AttentionSplit::kNone;

// Arguments of O = softmax(scores(Q K^T)) V for each batch. Q has m rows; K and V have n rows. A block processes one
// unit of work at a time: a row tile of a batch, or one of `splits` parts of that tile's keys.
//
// If V and O have more columns than a block can hold, their columns are divided into panels (Config::kPanels). Each
// panel of a batch then counts as a separate batch; the panels of a batch have consecutive batch indices. The units of
// every panel compute the product of Q and K again.
//
// Units are ordered by sections of batches. Within a section, the units of the first row tile (`descending`: the last)
// of every batch come first, then those of the next row tile of every batch, and so on.
struct AttentionArgs {
  // If splits > 1: partial results, [row tile of all batches][64 rows][split]. Each entry has
  // attention_partial_floats() floats per thread.
  float* partial;
  uint32_t* counters;   // zero before and after a launch: attention_counters()
  int32_t m, n, width;  // width: columns of V and O in all panels
  int32_t tiles_m;      // row tiles per batch
  int32_t units;        // over all batches and panels
  int32_t splits;
  int32_t section, last_section, sections;  // batches per section; batches in the last section; sections
  int32_t descending;
  float factor, scale;  // plain scores = factor * products; scale = factor * log2(e)
  AttentionBound first, plain_first, plain_last, last;
  // The bounds are valid for lengths in this range. For other lengths, all keys are used, and no score is plain.
  int32_t least_length, most_length;
  AttentionPlace q, k, v;
  // The divisors are the number of splits, the number of units in a section (without splits), the number of batches in
  // a section, and the number of batches in the last section.
  GemmDivisor by_splits, by_section, by_batches, by_last;
};
static_assert(sizeof(AttentionArgs) == 304);

// A table that lists the pages of each batch's keys. The pages belong to a pool. Each sequence has a row in the table
// with one entry per page; `heads` consecutive batches share a sequence.
struct AttentionPages {
  const void* table;
  int64_t offset, sequence, entry;  // offset of the first entry; strides of sequences and of entries
  int32_t heads;
  int32_t entries;  // per sequence
  int32_t pool;     // pages in the pool
  // Nonzero: entries are gather indices. A negative entry counts from the end of the pool, and an entry beyond the pool
  // is clamped to the nearest page. Zero: an entry outside the pool refers to no page.
  int32_t clamps;
  GemmDivisor by_heads;
};
static_assert(sizeof(AttentionPages) == 56);

// Rows of Q per group of four warps; each warp has 16 of them.
inline constexpr int kAttentionGroupRows = 64;

// Floats per thread in `partial`: the thread's elements of O, and the maximum and the sum of each of its two rows.
TILE_HD constexpr int attention_partial_floats(int width) {
  return width / 2 + 4;
}
// Counters of the scheduler: the next unit, and the number of blocks that have found no further unit. They are followed
// by a counter of finished splits for every 64 rows.
inline constexpr int kAttentionWalkCounters = 2;

// A unit of work, which the producer warp passes to the consumers. It covers the key tiles [first, last). In the tiles
// [plain_first, plain_last), all scores are plain: the product times a factor, without a mask. If a batch has fewer key
// tiles than there are splits, some splits have no tiles.
struct alignas(16) AttentionUnit {
  int32_t number, batch, row, split;  // number < 0: no further unit
  int32_t first, plain_first, plain_last, last;
  int32_t column;  // the panel's first column in V and O
};

// Registers per thread. Every thread has `entry` registers when the kernel starts. Then the producer warpgroup changes
// to `producer` and the consumer warpgroups change to `consumer`. All three are multiples of 8, and the registers of
// all threads must fit in the 65,536 of an SM. The producer needs few registers. It keeps more of them if it gets its
// units of work from a counter (`asks`).
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

// A tile of 16-bit elements in shared memory, in the format that TMA writes and wgmma reads. The tile consists of
// `count` pieces. A piece spans 64 elements along the dimension that is contiguous in memory, and has a 128-byte row
// for each of the `rows` elements along the other dimension.
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

// The number of lines of the TMA box that loads a tile of `lines` lines. `lines` is a multiple of 16. A TMA box has at
// most 256 lines.
TILE_HD constexpr int attention_box_lines(int lines) {
  constexpr int kMost = 256, kLines = 16;
  int boxes = (lines + kMost - 1) / kMost;
  while (lines % (boxes * kLines) != 0) ++boxes;
  return lines / boxes;
}

// Bytes of Q's tile. When Q is no longer needed, the results are staged there before they are stored.
TILE_HD constexpr int attention_q_bytes(int tile_m, int depth, int width) {
  const int q = attention_pieces(tile_m, depth, true).bytes(), o = attention_pieces(tile_m, width, true).bytes();
  return q > o ? q : o;
}
// Bytes of the queue that passes units to the consumers, plus one word per warpgroup through which one thread sends a
// value to the others.
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

// The sm80.h kernels (mma.sync) store a tile in slices along the dimension that is contiguous in memory. Returns the
// elements per slice if the tile has `length` elements along that dimension. `element` is the size of an element in
// bytes, here and below.
TILE_HD constexpr int attention_slice(int length, int element) {
  int slice = kGemmRowBytes / element;
  while (slice > 16 && length % slice != 0) slice /= 2;
  return slice;
}
// The number of 16-row blocks per warp, in a CTA with 64 * `groups` rows. With two blocks, a warp loads each fragment
// of K and V once for both blocks, but needs twice the registers.
TILE_HD constexpr int attention_blocks_m(int groups, int depth, int width) {
  return groups == 4 || (groups == 2 && depth + width <= 192) ? 2 : 1;
}
TILE_HD constexpr int attention_warps(int groups, int depth, int width) {
  return 4 * groups / attention_blocks_m(groups, depth, width);
}
// Few rows (a decoding step): all warps of a block process the same 16 rows. Each warp processes different tiles of
// keys, in its own ring. At the end, each warp stores its sums in the memory of its ring.
inline constexpr int kAttentionFewRows = 16;
TILE_HD constexpr int few_rows_ring_bytes(int tile_n, int depth, int width, int stages) {
  constexpr int kElement = 2;
  return stages * tile_n * (depth + width) * kElement;
}
TILE_HD constexpr int few_rows_sums_bytes(int width) {
  return 32 * attention_partial_floats(width) * static_cast<int>(sizeof(float));
}
// True if a warp with `blocks_m` 16-row blocks keeps Q in registers. Otherwise the warp loads Q again for each tile of
// keys. Split f32 (elements in two parts) always loads Q again, whatever this function returns.
TILE_HD constexpr bool attention_keeps_queries(int depth, int blocks_m, int element) {
  return depth * blocks_m * element <= 256;
}
// mma_attention_q_bytes() returns the size in bytes of Q's tile, which also stages the results before they are stored.
// The functions below return the size of all shared memory in bytes.
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
// The same for tiles that MFMA multiplies, whose rows are along the summed dimension.
TILE_HD constexpr int mfma_attention_q_bytes(int tile_m, int depth, int width, int element) {
  const int pieces = (width * element + kGemmRowBytes - 1) / kGemmRowBytes;
  const int q = tile_m * (depth * element + kGemmLinePad), o = tile_m * pieces * kGemmRowBytes;
  return q > o ? q : o;
}
TILE_HD constexpr int mfma_attention_shared_bytes(int tile_m, int tile_n, int depth, int width, int element) {
  return mfma_attention_q_bytes(tile_m, depth, width, element) + tile_n * (depth * element + kGemmLinePad) +
         width * (tile_n * element + kGemmLinePad) + attention_unit_bytes(0);
}
TILE_HD constexpr int few_rows_shared_bytes(int warps, int tile_n, int depth, int width, int stages) {
  return mma_attention_q_bytes(kAttentionFewRows, depth, width, 2) +
         warps * few_rows_ring_bytes(tile_n, depth, width, stages) + attention_unit_bytes(0);
}

}  // namespace heddle::tile
