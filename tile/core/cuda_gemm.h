// The contract between the CUDA GEMM kernels and the scheduler: the argument block, and the layout of shared memory.
#pragma once

#include <stdint.h>

#include "tile/core/swizzle.h"

namespace heddle::tile {

// The value of GemmArgs::a_step or b_step for an operand that all batches share.
inline constexpr int32_t kGemmOneForAll = -1;

// How a block stores its accumulators.
enum class GemmStore : int32_t {
  kTma,       // stores the epilogue's values through shared memory by TMA; D must be aligned to 16 bytes
  kRows,      // stores the epilogue's values through shared memory by threads; any matrix D
  kEpilogue,  // the epilogue itself stores D; any D
  kPartial,   // stores f32 (or s32) sums of one part of k, for gemm_reduce()
};

// How the warpgroups and blocks of the sm_90a kernel divide the work.
enum class GemmSchedule : int32_t {
  kCooperative,  // the warpgroups of a block divide the rows of a tile
  kPingPong,     // two warpgroups, each with tiles of its own
  kStreamK,      // cooperative; blocks also divide the k-tiles of the last tiles
};
// What the sm_90a kernel makes of a tile of sums, if not a tile of D from the sums alone.
enum class GemmForm : int32_t {
  kPlain,
  kSwapped,   // the kernel computes the transpose of D
  kGated,     // the epilogue combines pairs of sums
  kResidual,  // the epilogue also reads a matrix of 16-bit elements, which TMA loads
};
template <typename Config>
inline constexpr bool kPingPong = Config::kSchedule == GemmSchedule::kPingPong;
template <typename Config>
inline constexpr bool kStreamK = Config::kSchedule == GemmSchedule::kStreamK;
template <typename Config>
inline constexpr bool kSwapped = Config::kForm == GemmForm::kSwapped;

// The number of neighbours that a reducing epilogue reduces to one value: neighbouring columns of a row, or
// neighbouring rows of a column.
inline constexpr int kGemmPartialColumns = 32, kGemmPartialRows = 16;

// A gated product combines two columns of A B into one column of D. Of every 16 columns of B, the first 8 and the last
// 8 form 8 pairs. An epilogue combines the two sums of each pair. In the fragments of every instruction, one thread
// holds both sums of a pair.
inline constexpr int kGemmGateColumns = 8;
// Returns the column of B that gives the first sum of the pair for column `column` of D. The second sum is given by the
// column of B that is kGemmGateColumns columns later.
TILE_HD constexpr int gemm_gate_column(int column) {
  return column / kGemmGateColumns * 2 * kGemmGateColumns + column % kGemmGateColumns;
}

// Divides 0 <= n < 2^31 by a number that is known at launch. This takes a multiplication and a shift instead of about
// forty instructions.
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

// The arguments of one launch. m, n and k are the kernel's extents: with swapped operands, m counts columns of D. With
// a gating epilogue, n counts columns of D (half of B's columns), but partial sums have a column for each column of B.
struct GemmArgs {
  int32_t m, n, k, batch;
  int32_t tiles_m, tiles_n;  // counted in tiles of one cluster
  int32_t k_tiles, splits;   // splits > 1 only with GemmStore::kPartial
  int32_t raster_group;
  int32_t whole;           // stream-K: number of units that are computed as whole tiles
  void* partial;           // kPartial: the partial sums, [split][batch][row][column]; stream-K: one tile per block
  int64_t p_row, p_batch;  // strides in elements
  int64_t p_split;         // stride, in elements, between parts of k
  uint32_t* flags;         // stream-K: one flag per warp of each block, zero before and after the launch
  void* d;                 // D, for kRows
  int64_t d_row, d_batch;  // strides of D; kEpilogue: of the first result if it is a matrix, else 0
  // Batches have two dimensions. `heads` is the extent of the inner dimension (1: there is none). a_step and b_step are
  // the strides of A and B between heads, in elements. The heads of an operand are at offsets within its contiguous
  // rows. A step of 0 means that one stride covers all batches. kGemmOneForAll means that all batches share the
  // operand.
  int32_t heads, a_step, b_step;
  int32_t zero;                                                           // always 0, unknown to the compiler
  GemmDivisor by_tiles, by_splits, by_heads, by_band, by_group, by_last;  // set by set_divisors()
};
static_assert(sizeof(GemmArgs) == 168);

// Computes the divisors from the other members. Blocks use the divisors to find their tiles. Requires at least one
// tile.
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

// Stream-K. The k-tiles of the last tiles of D form one sequence, and each block computes an equal share of this
// sequence. A share may consist of the end of a tile, whole tiles, and the beginning of another tile. The block that
// computes the beginning of a tile stores the tile's result; the other blocks of the tile pass their sums to that
// block.
struct StreamRange {
  int64_t first, last;
};
TILE_HD constexpr StreamRange stream_share(int64_t k_tiles, int32_t blocks, int32_t block) {
  const int64_t each = k_tiles / blocks, more = k_tiles % blocks;  // the first `more` blocks have one additional k-tile
  const int64_t first = each * block + (block < more ? block : more);
  return {first, first + each + (block < more ? 1 : 0)};
}

// Arguments of the kernel that adds the partial results of `splits` parts, in order, and applies the epilogue.
struct GemmReduceArgs {
  int32_t rows, columns, batch, splits;
  const void* partial;
  int64_t p_row, p_batch, p_split;
  int32_t lanes;  // number of lanes that add the parts of the same 4 columns: a power of two up to 32
  int32_t unused;
};
static_assert(sizeof(GemmReduceArgs) == 56);

// Arguments for copying the rows of one operand so that TMA can read them: each row of the copy begins at a multiple of
// 16 bytes. Sizes and strides are in bytes. `from` is a multiple of 16.
struct GemmRepackPart {
  const void* from;
  void* to;
  int64_t from_offset, from_row, from_batch;  // offset of the first element; strides between rows and between batches
  int64_t end;                                // one past the last element, relative to `from`
  int64_t to_offset;                          // offset of the copy, relative to `to`
  uint32_t rows;                              // rows per batch
  uint32_t chunks;                            // 16-byte pieces per row
  uint32_t total;                             // 16-byte pieces of all rows of all batches
  uint32_t blocks;                            // number of blocks that copy this part
};
static_assert(sizeof(GemmRepackPart) == 72);
struct GemmRepackArgs {
  GemmRepackPart part[2];
};
inline constexpr int kGemmRepackThreads = 256, kGemmRepackChunks = 4;  // per block; per thread

// Arguments for copying a small operand once for each class of the other operand's rows. A class consists of the rows
// whose offsets are equal modulo 16 bytes (tile/kernel/cuda/operand/misaligned_copies.h). Sizes and strides are in
// bytes.
struct GemmClassCopiesArgs {
  const void* from;
  void* to;                       // [class][row][chunk]
  int64_t from_offset, from_row;  // offset of the first element; stride between rows
  int64_t end;                    // one past the last element, relative to `from`
  uint32_t bytes;                 // bytes per row
  uint32_t rows, chunks, total;   // rows per copy; 16-byte pieces per row; pieces of all copies
  uint32_t skip, skip_step;       // parameters of gemm_class_skip()
};
static_assert(sizeof(GemmClassCopiesArgs) == 64);
// Returns the offset, in bytes, of the rows of class `number` from the preceding multiple of 16 bytes.
TILE_HD constexpr uint32_t gemm_class_skip(uint32_t skip, uint32_t number, uint32_t step) {
  return (skip + number * step) & 15;
}

inline constexpr int kGemmRowBytes = 128;       // bytes of k in one row of a stage, for all types: the widest swizzle
inline constexpr int kGemmNeighbours = 8;       // columns of D per call of an epilogue that stores them
inline constexpr int kGemmStagingBytes = 2048;  // bytes of each of a warp's two buffers, if the warp stores no pieces

// A piece is the part of D that a warp stores at once: 16 rows with `bytes` bytes each. Consecutive pieces use the
// `buffers` buffers in rotation. Stores of 16 bytes to each of eight rows have no bank conflicts, because rows are
// swizzled or their length is an odd multiple of 16 bytes.
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

// Returns the bytes of one operand in one stage. K-major operands are stored in rows of 128 bytes of k, other operands
// in strips of 64 rows.
TILE_HD constexpr int gemm_operand_bytes(int rows, bool k_major) {
  return (k_major ? rows : (rows + 63) / 64 * 64) * kGemmRowBytes;
}

// Returns the bytes of one warp's staging buffers. `element`: bytes of an element of D.
TILE_HD constexpr int gemm_staging_bytes(GemmStore store, bool swapped, int tile_n, int element) {
  if (store == GemmStore::kPartial) return 0;
  if (store != GemmStore::kTma || swapped) return 2 * kGemmStagingBytes;
  const GemmPiece piece = gemm_piece(tile_n, element);
  return piece.buffers * piece.buffer_bytes();
}

// The next functions are for a residual matrix with 16-bit elements, which the epilogue reads. The residual is loaded
// in pieces of 16 rows and 128 bytes. A warp has gemm_residual_pieces() pieces per tile and gemm_residual_places()
// staging buffers. Pieces i, i + gemm_residual_places(), ... use the same buffer. A piece is loaded into the buffer
// from which the corresponding piece of D is later stored.
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
// Returns the bytes of the residual's staging buffers of one warp.
TILE_HD constexpr int gemm_residual_bytes(int tile_m, int tile_n, int consumers, bool ping_pong) {
  return gemm_residual_places(tile_m, tile_n, consumers, ping_pong) * kGemmStagingBytes;
}
inline constexpr int kGemmResidualBarrierBytes = 32 * 8;  // upper bound: eight warps with four buffers each

TILE_HD constexpr int gemm_shared_bytes(int tile_m, int tile_n, bool a_k_major, bool b_k_major, int stages,
                                        int consumers, int staging_bytes) {
  const int ring = stages * (gemm_operand_bytes(tile_m, a_k_major) + gemm_operand_bytes(tile_n, b_k_major));
  const int staging = consumers * 4 * staging_bytes;
  // 1024 bytes to align the base, two barriers per stage, two barriers for turns of the warpgroups
  return 1024 + ring + staging + stages * 16 + 16;
}

// For products of f32 numbers that are split into two parts (tile/kernel/cuda/gemm/sm90_3xtf32.h). Returns the bytes
// for the low parts of B and, for each stage, a barrier and a word per warp that splits numbers.
inline constexpr int kGemmSplitWarps = 4;
TILE_HD constexpr int gemm_split_bytes(int tile_n, int stages) {
  return stages * (gemm_operand_bytes(tile_n, true) + 8 + 4 * kGemmSplitWarps) + 16;
}

struct Range {
  int32_t first, last;  // last is exclusive
};
// Arguments of tile/kernel/cuda/gemm/sm90_cluster_splitk.h. Each part of k has k_each k-tiles, and each of the first
// k_more parts has one additional k-tile.
struct ClusterSplitKArgs {
  int32_t m, n;
  int32_t k_each, k_more;
  int32_t splits;  // number of clusters that divide k
  int32_t unused;
  void* partial;           // for kPartial, as in GemmArgs
  int64_t p_row, p_batch;  // strides in elements
  int64_t p_split;
  uint32_t skip, skip_step;  // parameters of gemm_class_skip(), if A's rows belong to several classes
};
static_assert(sizeof(ClusterSplitKArgs) == 64);

// Returns the number of rows of D that a block finishes if the blocks of a cluster divide the k of a tile
// (tile/kernel/cuda/gemm/sm90_cluster_splitk.h). The block adds the partial sums of these rows and applies the
// epilogue.
TILE_HD constexpr int cluster_splitk_slice(int rows, int parts) {
  return (rows + parts - 1) / parts;
}
// Returns the stride, in words, between rows of sums in shared memory. With this stride, a warp stores its accumulators
// without bank conflicts, both directly and transposed.
TILE_HD constexpr int cluster_splitk_pitch(int columns, bool swapped) {
  return (columns + 31) / 32 * 32 + (swapped ? 4 : 8);
}
// Returns the bytes of the ring of stages. After the main loop, the same memory holds the sums of the tile in the order
// of D. `split`: f32 operands are split into two parts.
TILE_HD constexpr int cluster_splitk_ring_bytes(int tile_m, int tile_n, bool a_k_major, bool b_k_major, int stages,
                                                int parts, bool swapped, bool split) {
  const int of_b = gemm_operand_bytes(tile_n, b_k_major);
  const int ring = stages * (gemm_operand_bytes(tile_m, a_k_major) + (split ? 2 * of_b : of_b));
  const int rows = swapped ? tile_n : tile_m, columns = swapped ? tile_m : tile_n;
  const int sums = parts * cluster_splitk_slice(rows, parts) * cluster_splitk_pitch(columns, swapped) * 4;
  return ring > sums ? ring : sums;
}
// Returns the bytes of all shared memory: the ring, the sums that the blocks of a cluster exchange, and the barriers.
TILE_HD constexpr int cluster_splitk_shared_bytes(int tile_m, int tile_n, bool a_k_major, bool b_k_major, int stages,
                                                  int parts, bool swapped, bool split) {
  const int rows = swapped ? tile_n : tile_m, columns = swapped ? tile_m : tile_n;
  const int sums = parts * cluster_splitk_slice(rows, parts) * cluster_splitk_pitch(columns, swapped) * 4;
  return 1024 + cluster_splitk_ring_bytes(tile_m, tile_n, a_k_major, b_k_major, stages, parts, swapped, split) +
         (parts > 1 ? sums : 0) + stages * (split ? 48 : 16) + 8;
}
// For tile/kernel/cuda/gemm/unaligned.h. Returns the bytes of a line of a stage: 128 bytes of k for each warp along k,
// and 16 more bytes because the line may begin at any address. The result is an odd multiple of 16 bytes, so accesses
// to eight lines have no bank conflicts.
TILE_HD constexpr int gemm_unaligned_pitch(int warps_k) {
  return warps_k * kGemmRowBytes + 16;
}
// Returns the bytes of the ring of stages. After the main loop, the same memory holds the sums of the warps that divide
// k.
TILE_HD constexpr int gemm_unaligned_ring_bytes(int tile_m, int tile_n, int warps_k, int stages, int parts,
                                                bool swapped) {
  const int ring = stages * (tile_m + tile_n) * gemm_unaligned_pitch(warps_k);
  const int rows = swapped ? tile_n : tile_m, columns = swapped ? tile_m : tile_n;
  const int sums = parts * cluster_splitk_slice(rows, parts) * cluster_splitk_pitch(columns, swapped) * 4 * warps_k;
  return ((ring > sums ? ring : sums) + 15) / 16 * 16;
}
// Returns the bytes of all shared memory: the ring, the sums that the blocks of a cluster exchange, and a barrier.
TILE_HD constexpr int gemm_unaligned_shared_bytes(int tile_m, int tile_n, int warps_k, int stages, int parts,
                                                  bool swapped) {
  const int rows = swapped ? tile_n : tile_m, columns = swapped ? tile_m : tile_n;
  const int sums = parts * cluster_splitk_slice(rows, parts) * cluster_splitk_pitch(columns, swapped) * 4;
  return gemm_unaligned_ring_bytes(tile_m, tile_n, warps_k, stages, parts, swapped) + (parts > 1 ? sums + 16 : 0);
}
// For tile/kernel/cuda/gemm/packed.h: the stride, in floats, between rows of sums in shared memory. The padding avoids
// bank conflicts when lanes store a fragment.
TILE_HD constexpr int gemm_packed_pitch(int tile_n) {
  return tile_n + 4;
}
// Returns the bytes of shared memory. It holds the ring of stages and, after the main loop, the sums of the warps that
// divide k.
TILE_HD constexpr int gemm_packed_shared_bytes(int tile_m, int tile_n, int warps_k, int stages) {
  const int ring = stages * warps_k * tile_m * kGemmRowBytes, sums = warps_k * tile_m * gemm_packed_pitch(tile_n) * 4;
  return ring > sums ? ring : sums;
}
// Threads per block that leave enough registers for two blocks per SM.
inline constexpr int kGemmHalfOfThreads = 320;
TILE_HD constexpr int cluster_splitk_half_of_threads(bool split) {
  return split ? kGemmHalfOfThreads / 2 : kGemmHalfOfThreads;
}
// Shared memory per block that allows two blocks per SM. An SM has 228 KiB and reserves 1 KiB per block.
inline constexpr int kGemmHalfOfShared = 113 << 10;

// Returns the number of stages whose copies are in flight when threads request the next stage. A stage of the ring
// becomes free when the next stage is multiplied, so the copies of at most stages - 2 stages of the ring can be in
// flight. `shifted` is the number of operands that are first copied as unaligned words (load_shifted.h); such copies
// need no space in the ring. `rows` is the sum of the numbers of rows of the two operands' tiles.
TILE_HD constexpr int gemm_stages_behind(int stages, int shifted, int rows) {
  if (shifted == 0) return stages > 3 ? 2 : 1;
  const int wanted = rows <= 96 ? 6 : rows <= 160 ? 4 : 2;
  return shifted == 2 || stages - 2 > wanted ? wanted : stages - 2;
}

// Returns the bytes of shared memory, after the ring, for the unaligned words of an operand whose lines begin at any
// byte. `slots` is one more than the number of stages in flight.
TILE_HD constexpr int gemm_raw_bytes(int rows, bool k_major, int element, int slots) {
  const int depth = kGemmRowBytes / element;
  return (k_major ? rows * (kGemmRowBytes + 16) : depth * (rows * element + 16)) * slots;
}

// One unit of work of a block: a tile of D and a part of k.
struct GemmUnit {
  int32_t m, n;  // first row and column of this block's tile, in elements
  int32_t batch, split;
  Range k;  // in k-tiles
};

struct TileIndex {
  int32_t m, n;
};

// Returns the position of tile number `linear` of a batch. Tiles are divided into bands of raster_group rows of tiles
// and numbered column by column within a band, so that tiles that are computed at the same time share operands in L2.
TILE_HD constexpr TileIndex gemm_tile(const GemmArgs& args, int32_t linear) {
  const int32_t band = args.by_band.divide(linear), first = band * args.raster_group;
  const int32_t inside = linear - first * args.tiles_n, left = args.tiles_m - first;
  const bool whole = left >= args.raster_group;
  const int32_t height = whole ? args.raster_group : left;
  const int32_t column = (whole ? args.by_group : args.by_last).divide(inside);
  return {first + inside - column * height, column};
}

// Returns the k-tiles of part `split`. The sizes of parts differ by at most one k-tile.
TILE_HD constexpr Range gemm_part(const GemmArgs& args, int32_t split) {
  const int32_t each = args.by_splits.divide(args.k_tiles), more = args.k_tiles - each * args.splits;
  const int32_t first = each * split + (split < more ? split : more);
  return {first, first + each + (split < more ? 1 : 0)};
}

// Returns unit number `unit`. There are tiles_m * tiles_n * splits * batch units, with tiles of tile_m x tile_n
// elements. If Splits is false, args.splits must be 1.
template <bool Splits = true>
TILE_HD constexpr GemmUnit gemm_unit(const GemmArgs& args, int32_t unit, int32_t tile_m, int32_t tile_n) {
  const int32_t tiles = args.tiles_m * args.tiles_n, outer = args.by_tiles.divide(unit);
  const TileIndex tile = gemm_tile(args, unit - outer * tiles);
  if (!Splits || args.splits == 1) return {tile.m * tile_m, tile.n * tile_n, outer, 0, {0, args.k_tiles}};
  const int32_t batch = args.by_splits.divide(outer), split = outer - batch * args.splits;
  return {tile.m * tile_m, tile.n * tile_n, batch, split, gemm_part(args, split)};
}

inline constexpr int kGemmStagePad = 8;  // padding between the rows of a warp's staging buffer, in words

// Returns the bytes of shared memory of sm80::gemm: the ring of stages, whose memory is reused to stage 16 rows of
// accumulators per warp. tile_k is in bytes.
TILE_HD constexpr int gemm_sm80_shared_bytes(int tile_m, int tile_n, int tile_k, int stages, int warps_m, int warps_n) {
  const int ring = stages * (tile_m + tile_n) * tile_k;
  const int staging = warps_m * warps_n * 16 * (tile_n / warps_n + kGemmStagePad) * 4;
  return ring > staging ? ring : staging;
}

inline constexpr int kGemmLinePad = 16;  // padding after the rows of one k, in bytes

// Returns the bytes of shared memory of cuda::gemm_simt. tile_k is in elements of `size` bytes.
TILE_HD constexpr int gemm_simt_shared_bytes(int tile_m, int tile_n, int tile_k, int size, int stages) {
  return stages * tile_k * ((tile_m + tile_n) * size + 2 * kGemmLinePad);
}

// Returns the bytes of LDS of cuda::gemm_mfma. tile_k is in bytes.
TILE_HD constexpr int gemm_mfma_shared_bytes(int tile_m, int tile_n, int tile_k, int stages) {
  return stages * (tile_m + tile_n) * (tile_k + kGemmLinePad);
}

}  // namespace heddle::tile
