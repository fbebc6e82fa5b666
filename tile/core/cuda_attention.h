// What the attention kernel for CUDA and the scheduler agree on: the argument block and the use of shared memory.
#pragma once

#include <stdint.h>

#include "tile/core/cuda_gemm.h"

namespace heddle::tile {

// Where an operand lies for a batch (a head of an image, say): with b = batch / shared, at (b % inner, b / inner) of the
// two outer dimensions of its tensor map, each counted only where its step is 1. `shared`: batches that read the same.
struct AttentionPlace {
  GemmDivisor by_shared, by_inner;
  int32_t inner, inner_step, outer_step;
};
static_assert(sizeof(AttentionPlace) == 28);

// O = softmax(scores(Q K^T)) V for each batch; Q has m rows, K and V have n.
struct AttentionArgs {
  int32_t m, n, width;  // width: of V and O
  int32_t tiles_m;      // row tiles of a batch
  int32_t units;        // of all batches
  int32_t key_tiles;
  float scale;  // log2(e), times what all scores are multiplied by where that is all that happens to them
  AttentionPlace q, k, v;
  GemmDivisor by_tiles;
};
static_assert(sizeof(AttentionArgs) == 120);

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

// Of Q's tile, in which the results wait for their way to memory when Q is no longer needed.
TILE_HD constexpr int attention_q_bytes(int tile_m, int depth, int width) {
  const int q = attention_pieces(tile_m, depth, true).bytes(), o = attention_pieces(tile_m, width, true).bytes();
  return q > o ? q : o;
}
TILE_HD constexpr int attention_shared_bytes(int tile_m, int tile_n, int depth, int width, bool k_along_depth,
                                             bool v_along_width, int q_stages, int stages) {
  const int ring =
      attention_pieces(tile_n, depth, k_along_depth).bytes() + attention_pieces(width, tile_n, !v_along_width).bytes();
  return 1024 + q_stages * attention_q_bytes(tile_m, depth, width) + stages * ring + (2 * q_stages + 4 * stages) * 8;
}

}  // namespace heddle::tile
