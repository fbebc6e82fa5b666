// The contract between the CUDA GEMM kernels and the scheduler: the argument block and the layout of shared memory.
#pragma once

#include <stdint.h>

#include "tile/core/swizzle.h"

namespace heddle::tile {

// The batch step of an operand that all batches share.
inline constexpr int32_t kGemmOneForAll = -1;

// How a block passes its accumulators on.
enum class GemmStore : int32_t {
  kTma,       // values returned by the epilogue, through shared memory, by TMA: D aligned to 16 bytes
  kRows,      // values returned by the epilogue, through shared memory, by threads: any matrix D
  kEpilogue,  // the epilogue stores it: any D
  kPartial,   // f32 (or s32) sums of one part of k, for gemm_reduce()
};

// A reducing epilogue makes one value of this many columns of a row, or of this many rows of a column.
inline constexpr int kGemmPartialColumns = 32, kGemmPartialRows = 16;

// Gated products. Of every 16 columns of B, the first 8 and the last 8 produce 8 columns of D: an epilogue combines the
// two sums of a pair. In the fragments of every instruction, one thread holds both.
inline constexpr int kGemmGateColumns = 8;
// The column of B with the first sum of a pair, for a column of D. The second sum is kGemmGateColumns further.
TILE_HD constexpr int gemm_gate_column(int column) {
  return column / kGemmGateColumns * 2 * kGemmGateColumns + column % kGemmGateColumns;
}

// Division of 0 <= n < 2^31 by a number known at launch: a multiplication and a shift instead of about forty
// instructions.
struct GemmDivisor {
  uint32_t multiplier, shift;

  static TILE_HD constexpr GemmDivisor of(int32_t divisor) {
    uint32_t log = 0;  // log2 of the divisor, rounded up
    while (uint64_t{1} << log < static_cast<uint64_t>(divisor)) ++log;
    const uint64_t power = uint64_t{1} << (31 + log), d = static_cast<uint64_t>(divisor);
    return {static_cast<uint32_t>((power + d - 1) / d), 31 + log};
  }
  TILE_HD constexpr int32_t divide(int32_t n) const {
    return static_cast<int32_t>((static_cast<uint64_t>(static_cast<uint32_t>(n)) * multiplier) >> shift);
  }
};

// Arguments of one launch. m, n and k are those of the kernel: with swapped operands m counts columns of D. With a
// gating epilogue, columns are those of D, half as many as B has; partial sums have all columns.
struct GemmArgs {
  int32_t m, n, k, batch;
  int32_t tiles_m, tiles_n;  // in tiles of one cluster
  int32_t k_tiles, splits;   // splits > 1 only with GemmStore::kPartial
  int32_t raster_group;
  int32_t whole;           // stream-K: units before this one are whole tiles
  void* partial;           // kPartial: the partial sums, [split][batch][row][column]; stream-K: a tile for each block
  int64_t p_row, p_batch;  // strides in elements
  int64_t p_split;         // stride of the partial sums of one part
  uint32_t* flags;         // stream-K: one for each warp of each block, zero before and after
  void* d;                 // kRows
  int64_t d_row, d_batch;  // strides of D; kEpilogue: of its first result, where that is a matrix (0: is none)
  // Batches have two dimensions. The inner one (heads; 1 if there is none) lies within the rows of an operand. The
  // steps are in elements from head to head; 0: the operand has one stride for all batches; or kGemmOneForAll.
  int32_t heads, a_step, b_step;
  int32_t zero;                                                           // always, but the compiler does not know it
  GemmDivisor by_tiles, by_splits, by_heads, by_band, by_group, by_last;  // set_divisors()
};
static_assert(sizeof(GemmArgs) == 168);

// Sets the divisors by which blocks find their tiles from the counts. There must be at least one tile.
TILE_HD constexpr void set_divisors(GemmArgs& args) {
  if (args.raster_group > args.tiles_m) args.raster_group = args.tiles_m;
  const int32_t last = args.tiles_m % args.raster_group;  // height of the last band of tiles
  args.by_tiles = GemmDivisor::of(args.tiles_m * args.tiles_n);
  args.by_splits = GemmDivisor::of(args.splits);
  args.by_heads = GemmDivisor::of(args.heads > 1 ? args.heads : 1);
  args.by_band = GemmDivisor::of(args.raster_group * args.tiles_n);
  args.by_group = GemmDivisor::of(args.raster_group);
  args.by_last = GemmDivisor::of(last == 0 ? args.raster_group : last);
}

// Stream-K. The k-tiles of the last tiles of D form one sequence, and each block takes an equal share: perhaps the end
// of a tile, whole tiles, the beginning of another. The block with the beginning of a tile stores its result; the
// others pass their sums to it.
struct StreamRange {
  int64_t first, last;
};
TILE_HD constexpr StreamRange stream_share(int64_t k_tiles, int32_t blocks, int32_t block) {
  const int64_t each = k_tiles / blocks, more = k_tiles % blocks;  // the first `more` blocks take one more
  const int64_t first = each * block + (block < more ? block : more);
  return {first, first + each + (block < more ? 1 : 0)};
}

// Sums the partial results of `splits` parts in order and applies the epilogue.
struct GemmReduceArgs {
  int32_t rows, columns, batch, splits;
  const void* partial;
  int64_t p_row, p_batch, p_split;
  int32_t lanes;  // threads that share the parts of 4 columns: 1, or kGemmReduceLanes
  int32_t unused;
};
static_assert(sizeof(GemmReduceArgs) == 56);
inline constexpr int kGemmReduceLanes = 32;

// Copies the rows of one or two operands to rows that TMA can read: each begins at a multiple of 16 bytes. Sizes and
// strides are in bytes; `from` is a multiple of 16.
struct GemmRepackPart {
  const void* from;
  void* to;
  int64_t from_offset, from_row, from_batch;  // of the first element; from row to row, batch to batch
  int64_t end;                                // one past the last element, relative to `from`
  int64_t to_offset;                          // of the copy, relative to `to`
  uint32_t rows;                              // of a batch
  uint32_t chunks;                            // pieces of 16 bytes of a row
  uint32_t total;                             // of all rows of all batches
  uint32_t blocks;                            // blocks that copy this part
};
static_assert(sizeof(GemmRepackPart) == 72);
struct GemmRepackArgs {
  GemmRepackPart part[2];
};
inline constexpr int kGemmRepackThreads = 256, kGemmRepackChunks = 4;  // of a block; of a thread

// Makes a copy of an operand's rows for each class of the other operand's rows
// (tile/kernel/cuda/operand/misaligned_copies.h). In bytes.
struct GemmClassCopiesArgs {
  const void* from;
  void* to;                       // [class][row][chunk]
  int64_t from_offset, from_row;  // of the first element; from row to row
  int64_t end;                    // one past the last element, relative to `from`
  uint32_t bytes;                 // of a row
  uint32_t rows, chunks, total;   // of a copy; pieces of 16 bytes of a row; of all copies
  uint32_t skip, skip_step;       // gemm_class_skip()
};
static_assert(sizeof(GemmClassCopiesArgs) == 64);
// Bytes from the preceding multiple of 16 to the beginning of the rows of a class.
TILE_HD constexpr uint32_t gemm_class_skip(uint32_t skip, uint32_t number, uint32_t step) {
  return (skip + number * step) & 15;
}

inline constexpr int kGemmRowBytes = 128;       // of k in one stage, whatever the type: the widest swizzle
inline constexpr int kGemmNeighbours = 8;       // columns of D that an epilogue sees at once where it stores them
inline constexpr int kGemmStagingBytes = 2048;  // of one warp's store, twice, where it is not in pieces

// A piece is what a warp stores at once: 16 rows of D, `bytes` of each, from one of `buffers` buffers in turn. Writing
// 16 bytes of eight rows at once has no bank conflicts: rows are swizzled, or an odd multiple of 16 bytes long.
struct GemmPiece {
  int bytes;
  bool swizzled;
  int buffers;

  TILE_HD constexpr int buffer_bytes() const { return 16 * bytes; }
};
TILE_HD constexpr GemmPiece gemm_piece(int tile_n, int element) {
  constexpr int kMostOdd = 13;
  const int row = tile_n * element;
  const int swizzled = row % 32 == 0 ? swizzle_width(row) : 0;
  int odd = 1;
  for (int i = 3; element == 2 && i <= kMostOdd; i += 2) {
    if (row % (i * 16) == 0) odd = i;
  }
  if (odd == 1 && swizzled == 0) odd = row / 16;
  const int bytes = odd * 16 > swizzled ? odd * 16 : swizzled;
  return {bytes, bytes == swizzled, bytes == row ? 1 : 2};
}

// Bytes of one operand in one stage. K-major operands are stored in rows of 128 bytes of k, others in strips of 64
// rows.
TILE_HD constexpr int gemm_operand_bytes(int rows, bool k_major) {
  return (k_major ? rows : (rows + 63) / 64 * 64) * kGemmRowBytes;
}

// Staging bytes of one warp. `element`: bytes of an element of D.
TILE_HD constexpr int gemm_staging_bytes(GemmStore store, bool swapped, int tile_n, int element) {
  if (store == GemmStore::kPartial) return 0;
  if (store != GemmStore::kTma || swapped) return 2 * kGemmStagingBytes;
  const GemmPiece piece = gemm_piece(tile_n, element);
  return piece.buffers * piece.buffer_bytes();
}

// A residual matrix of 16-bit elements beside D. Each warp has places for this many pieces of 16 rows and 128 bytes; a
// piece arrives in the staging place from which the piece of D leaves. Pieces `i`, `i` + gemm_residual_places() ... of
// its tiles share a place.
TILE_HD constexpr int gemm_residual_pieces(int tile_m, int tile_n, int consumers, bool ping_pong) {
  return tile_m / (ping_pong ? 1 : consumers) / 64 * (tile_n / 64);
}
TILE_HD constexpr int gemm_residual_places(int tile_m, int tile_n, int consumers, bool ping_pong) {
  const int pieces = gemm_residual_pieces(tile_m, tile_n, consumers, ping_pong);
  for (int places = 4; places > 1; --places) {
    if (pieces % places == 0) return places;
  }
  return 1;
}
// Of one warp.
TILE_HD constexpr int gemm_residual_bytes(int tile_m, int tile_n, int consumers, bool ping_pong) {
  return gemm_residual_places(tile_m, tile_n, consumers, ping_pong) * kGemmStagingBytes;
}
inline constexpr int kGemmResidualBarrierBytes = 32 * 8;  // at most: of eight warps with four places each

TILE_HD constexpr int gemm_shared_bytes(int tile_m, int tile_n, bool a_k_major, bool b_k_major, int stages,
                                        int consumers, int staging_bytes) {
  const int ring = stages * (gemm_operand_bytes(tile_m, a_k_major) + gemm_operand_bytes(tile_n, b_k_major));
  const int staging = consumers * 4 * staging_bytes;
  // 1024 to align the base; two barriers a stage, two for turns
  return 1024 + ring + staging + stages * 16 + 16;
}

// f32 in two parts (tile/kernel/cuda/gemm/sm90_3xtf32.h): the low parts of B, and for each stage a barrier and a word
// for each warp that splits numbers.
inline constexpr int kGemmSplitWarps = 4;
TILE_HD constexpr int gemm_split_bytes(int tile_n, int stages) {
  return stages * (gemm_operand_bytes(tile_n, true) + 8 + 4 * kGemmSplitWarps) + 16;
}

struct Range {
  int32_t first, last;  // last is exclusive
};
// Arguments of tile/kernel/cuda/gemm/sm90_cluster_splitk.h. Each part of k has k_each k-tiles; the first k_more parts
// have one more.
struct ClusterSplitKArgs {
  int32_t m, n;
  int32_t k_each, k_more;
  int32_t splits;  // parts of k beyond the cluster
  int32_t unused;
  void* partial;           // kPartial: as in GemmArgs
  int64_t p_row, p_batch;  // strides in elements
  int64_t p_split;
  uint32_t skip, skip_step;  // if A's rows are of several classes: gemm_class_skip()
};
static_assert(sizeof(ClusterSplitKArgs) == 64);

// If the blocks of a cluster share a tile's k (tile/kernel/cuda/gemm/sm90_cluster_splitk.h), each block adds up and
// finishes this many of the tile's rows in D.
TILE_HD constexpr int cluster_splitk_slice(int rows, int parts) {
  return (rows + parts - 1) / parts;
}
// Words between rows of sums. A warp that writes accumulators as they are, or transposed, has no bank conflicts.
TILE_HD constexpr int cluster_splitk_pitch(int columns, bool swapped) {
  return (columns + 31) / 32 * 32 + (swapped ? 4 : 8);
}
// Bytes of the ring of stages; afterwards it holds the tile in the order of D. `split`: for f32 in two parts.
TILE_HD constexpr int cluster_splitk_ring_bytes(int tile_m, int tile_n, bool a_k_major, bool b_k_major, int stages,
                                                int parts, bool swapped, bool split) {
  const int of_b = gemm_operand_bytes(tile_n, b_k_major);
  const int ring = stages * (gemm_operand_bytes(tile_m, a_k_major) + (split ? 2 * of_b : of_b));
  const int rows = swapped ? tile_n : tile_m, columns = swapped ? tile_m : tile_n;
  const int sums = parts * cluster_splitk_slice(rows, parts) * cluster_splitk_pitch(columns, swapped) * 4;
  return ring > sums ? ring : sums;
}
// All shared memory: also the sums that the blocks of a cluster exchange, and the barriers.
TILE_HD constexpr int cluster_splitk_shared_bytes(int tile_m, int tile_n, bool a_k_major, bool b_k_major, int stages,
                                                  int parts, bool swapped, bool split) {
  const int rows = swapped ? tile_n : tile_m, columns = swapped ? tile_m : tile_n;
  const int sums = parts * cluster_splitk_slice(rows, parts) * cluster_splitk_pitch(columns, swapped) * 4;
  return 1024 + cluster_splitk_ring_bytes(tile_m, tile_n, a_k_major, b_k_major, stages, parts, swapped, split) +
         (parts > 1 ? sums : 0) + stages * (split ? 48 : 16) + 8;
}
// tile/kernel/cuda/gemm/unaligned.h. Bytes of a line of a stage: 128 bytes of k for each warp along k, and 16 more
// because it may begin anywhere. Odd multiples of 16 bytes, so that eight lines have no bank conflicts.
TILE_HD constexpr int gemm_unaligned_pitch(int warps_k) {
  return warps_k * kGemmRowBytes + 16;
}
// Bytes of the ring of stages; afterwards it holds the sums of every warp along k.
TILE_HD constexpr int gemm_unaligned_ring_bytes(int tile_m, int tile_n, int warps_k, int stages, int parts,
                                                bool swapped) {
  const int ring = stages * (tile_m + tile_n) * gemm_unaligned_pitch(warps_k);
  const int rows = swapped ? tile_n : tile_m, columns = swapped ? tile_m : tile_n;
  const int sums = parts * cluster_splitk_slice(rows, parts) * cluster_splitk_pitch(columns, swapped) * 4 * warps_k;
  return ((ring > sums ? ring : sums) + 15) / 16 * 16;
}
// All shared memory: also the sums that the blocks of a cluster exchange, and a barrier.
TILE_HD constexpr int gemm_unaligned_shared_bytes(int tile_m, int tile_n, int warps_k, int stages, int parts,
                                                  bool swapped) {
  const int rows = swapped ? tile_n : tile_m, columns = swapped ? tile_m : tile_n;
  const int sums = parts * cluster_splitk_slice(rows, parts) * cluster_splitk_pitch(columns, swapped) * 4;
  return gemm_unaligned_ring_bytes(tile_m, tile_n, warps_k, stages, parts, swapped) + (parts > 1 ? sums + 16 : 0);
}
inline constexpr int kGemmHalfOfThreads = 320;  // that leave registers for as many sums
TILE_HD constexpr int cluster_splitk_half_of_threads(bool split) {
  return split ? kGemmHalfOfThreads / 2 : kGemmHalfOfThreads;
}
inline constexpr int kGemmHalfOfShared = 113 << 10;  // of a SM's 228 KiB, of which each block costs 1

// Stages whose copies are in flight when threads request the next one. `shifted`: how many of the operands are first
// copied as unaligned words (load_shifted.h), which need no place in the ring yet; `rows` of both tiles. A stage
// becomes free when the next one is multiplied, so copies into the ring can have all but two stages in flight.
TILE_HD constexpr int gemm_stages_behind(int stages, int shifted, int rows) {
  if (shifted == 0) return stages > 3 ? 2 : 1;
  const int wanted = rows <= 96 ? 6 : rows <= 160 ? 4 : 2;
  return shifted == 2 || stages - 2 > wanted ? wanted : stages - 2;
}

// Shared memory, after the ring, for the words of an operand whose lines begin at any byte. `slots`: one more than the
// number of stages in flight.
TILE_HD constexpr int gemm_raw_bytes(int rows, bool k_major, int element, int slots) {
  const int depth = kGemmRowBytes / element;
  return (k_major ? rows * (kGemmRowBytes + 16) : depth * (rows * element + 16)) * slots;
}

// One unit of work of a block: a tile of D and a part of k.
struct GemmUnit {
  int32_t m, n;  // of this block's tile, in elements
  int32_t batch, split;
  Range k;  // in k-tiles
};

struct TileIndex {
  int32_t m, n;
};

// Tile number `linear` of a batch. Tiles are in bands of raster_group rows of tiles, column by column inside a band, so
// that tiles that run together share operands in L2.
TILE_HD constexpr TileIndex gemm_tile(const GemmArgs& args, int32_t linear) {
  const int32_t band = args.by_band.divide(linear), first = band * args.raster_group;
  const int32_t inside = linear - first * args.tiles_n, left = args.tiles_m - first;
  const bool whole = left >= args.raster_group;
  const int32_t height = whole ? args.raster_group : left;
  const int32_t column = (whole ? args.by_group : args.by_last).divide(inside);
  return {first + inside - column * height, column};
}

// The k-tiles of part `split`. Parts differ by at most one k-tile.
TILE_HD constexpr Range gemm_part(const GemmArgs& args, int32_t split) {
  const int32_t each = args.by_splits.divide(args.k_tiles), more = args.k_tiles - each * args.splits;
  const int32_t first = each * split + (split < more ? split : more);
  return {first, first + each + (split < more ? 1 : 0)};
}

// Unit number `unit` of tiles_m * tiles_n * splits * batch, for tiles of single blocks. Splits: there may be several.
template <bool Splits = true>
TILE_HD constexpr GemmUnit gemm_unit(const GemmArgs& args, int32_t unit, int32_t tile_m, int32_t tile_n) {
  const int32_t tiles = args.tiles_m * args.tiles_n, outer = args.by_tiles.divide(unit);
  const TileIndex tile = gemm_tile(args, unit - outer * tiles);
  if (!Splits || args.splits == 1) return {tile.m * tile_m, tile.n * tile_n, outer, 0, {0, args.k_tiles}};
  const int32_t batch = args.by_splits.divide(outer), split = outer - batch * args.splits;
  return {tile.m * tile_m, tile.n * tile_n, batch, split, gemm_part(args, split)};
}

inline constexpr int kGemmStagePad = 8;  // words between the rows of a warp's staging buffer

// Shared memory of sm80::gemm: the ring of stages, reused to stage 16 rows of accumulators of each warp. tile_k in
// bytes.
TILE_HD constexpr int gemm_sm80_shared_bytes(int tile_m, int tile_n, int tile_k, int stages, int warps_m, int warps_n) {
  const int ring = stages * (tile_m + tile_n) * tile_k;
  const int staging = warps_m * warps_n * 16 * (tile_n / warps_n + kGemmStagePad) * 4;
  return ring > staging ? ring : staging;
}

inline constexpr int kGemmLinePad = 16;  // bytes behind the rows of one k

// Shared memory of cuda::gemm_simt. tile_k in elements of `size` bytes.
TILE_HD constexpr int gemm_simt_shared_bytes(int tile_m, int tile_n, int tile_k, int size, int stages) {
  return stages * tile_k * ((tile_m + tile_n) * size + 2 * kGemmLinePad);
}

}  // namespace heddle::tile
