// What the GEMM kernels for CUDA and the scheduler agree on: the argument block and the use of shared memory.
#pragma once

#include <stdint.h>

#include "tile/core/swizzle.h"

namespace heddle::tile {

// How a block hands its accumulators on.
enum class GemmStore : int32_t {
  kTma,       // what the epilogue returns, through shared memory, by the copy engine: D aligned to 16 bytes
  kRows,      // what the epilogue returns, through shared memory, by threads: any matrix D
  kEpilogue,  // the epilogue stores it: any D
  kPartial,   // f32 (or s32) sums of one part of k, for gemm_reduce()
};

// Arguments of one launch. m, n and k are the kernel's own view: with swapped operands m counts columns of D.
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
  // Batches in two dimensions, of which the inner one (heads, 1: there is none) lies within the rows of an operand: so
  // many elements apart; 0: that operand has one stride for all batches.
  int32_t heads, a_step, b_step, unused;
};
static_assert(sizeof(GemmArgs) == 120);

// Stream-K. The k-tiles of the last tiles of D lie side by side, and each block takes an equal share of them: perhaps
// the end of a tile, whole tiles, the beginning of another. Who has a tile's beginning has its result; the others
// hand it their sums.
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
};
static_assert(sizeof(GemmReduceArgs) == 48);

// Copies the rows of one or two operands to rows that the copy engine can read: each begins at a multiple of 16 bytes.
// Sizes and strides in bytes; `from` is a multiple of 16.
struct GemmRepackPart {
  const void* from;
  void* to;
  int64_t from_offset, from_row, from_batch;  // of the first element; from row to row, batch to batch
  int64_t end;                                // behind the last element, from `from` on
  int64_t to_offset;                          // of the copy behind `to`
  uint32_t rows;                              // of a batch
  uint32_t chunks;                            // pieces of 16 bytes of a row
  uint32_t total;                             // of all rows of all batches
  uint32_t blocks;                            // that copy this part
};
static_assert(sizeof(GemmRepackPart) == 72);
struct GemmRepackArgs {
  GemmRepackPart part[2];
};
inline constexpr int kGemmRepackThreads = 256, kGemmRepackChunks = 4;  // of a block; of a thread

inline constexpr int kGemmRowBytes = 128;       // of k in one stage, whatever the type: the widest swizzle
inline constexpr int kGemmStagingBytes = 2048;  // of one warp's store, twice
inline constexpr int kGemmNeighbours = 8;       // columns of D that an epilogue sees at once where it stores them

// Bytes of one operand in one stage. K-major operands hold rows of 128 bytes of k; the others hold strips of 64 rows.
TILE_HD constexpr int gemm_operand_bytes(int rows, bool k_major) {
  return (k_major ? rows : (rows + 63) / 64 * 64) * kGemmRowBytes;
}

TILE_HD constexpr int gemm_shared_bytes(int tile_m, int tile_n, bool a_k_major, bool b_k_major, int stages,
                                        int consumers, GemmStore store) {
  const int ring = stages * (gemm_operand_bytes(tile_m, a_k_major) + gemm_operand_bytes(tile_n, b_k_major));
  const int staging = store != GemmStore::kPartial ? consumers * 4 * 2 * kGemmStagingBytes : 0;
  return 1024 + ring + staging + stages * 16 + 16;  // 1024 to align the base; two barriers a stage, two for turns
}

// One unit of work of a block: a tile of D and a part of k.
struct GemmUnit {
  int32_t m, n;  // of this block's tile, in elements
  int32_t batch, split;
  Range k;  // in k-tiles
};

// Unit number `unit` of tiles_m * tiles_n * splits * batch, where a tile is one block's.
TILE_HD constexpr GemmUnit gemm_unit(const GemmArgs& args, int32_t unit, int32_t tile_m, int32_t tile_n) {
  const int32_t tiles = args.tiles_m * args.tiles_n;
  int32_t outer = 0, batch = 0;  // divisions before the first load cost: most problems need none of these
  if (args.splits > 1 || args.batch > 1) {
    outer = static_cast<int32_t>(static_cast<uint32_t>(unit) / static_cast<uint32_t>(tiles));
    unit -= outer * tiles;
    batch = args.splits == 1 ? outer : static_cast<int32_t>(static_cast<uint32_t>(outer) / args.splits);
  }
  const TileIndex tile = raster(unit, args.tiles_m, args.tiles_n, args.raster_group);
  const int32_t split = outer - batch * args.splits;
  return {tile.m * tile_m, tile.n * tile_n, batch, split, part_of(args.k_tiles, args.splits, split)};
}

inline constexpr int kGemmStagePad = 8;  // words between the rows of a warp's staging buffer

// Shared memory of sm80::gemm: the ring of stages, used again to stage 16 rows of accumulators of each warp. tile_k in
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
