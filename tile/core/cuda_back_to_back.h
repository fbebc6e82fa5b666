// The argument block and the shared-memory layout of CUDA kernels that compute two consecutive products. Used by these
// kernels and the scheduler.
#pragma once

#include <stdint.h>

#include "tile/core/cuda_gemm.h"

namespace heddle::tile {

// D1 = g(f(A W0) W1). A block computes all columns for one tile of rows. The grid has tiles_m * batch blocks along x.
struct BackToBackArgs {
  int32_t m, n0, n1;     // rows; columns of D0 = f(A W0); columns of D1
  int32_t k_tiles;       // of the first product, A W0
  int32_t steps;         // loop iterations over the columns of D1, with Config::kTileN columns each
  int32_t tiles_m;       // tiles of rows per batch
  GemmDivisor by_tiles;  // divisor tiles_m
};
static_assert(sizeof(BackToBackArgs) == 32);

// The number of columns of D0 that a tile of W1 spans. It is the width, in elements, of the widest swizzle whose width
// divides `columns0`. `columns0` must be a multiple of 16. `element` is the size of an element in bytes.
TILE_HD constexpr int back_to_back_slice(int columns0, int element) {
  for (int bytes = kGemmRowBytes; bytes > 32; bytes /= 2) {
    if (columns0 * element % bytes == 0) return bytes / element;
  }
  return 32 / element;
}

// Tile sizes, as in Config of tile/kernel/cuda/back_to_back.h.
struct BackToBackTile {
  int tile_m, columns0, tile_k, tile_n, warps_m, warps_n, stages;
  bool in_registers;
};
// The layout of shared memory, in bytes. The ring of the first product begins at offset 0. After that product, D0
// (unless it is in registers) and the staging buffers of D1 reuse the ring's memory. The whole of W1 is stored after
// this memory.
struct BackToBackShared {
  int inner, staging, weights, total;  // offsets of D0 (`inner`), of the staging buffers and of W1; total size
};
TILE_HD constexpr BackToBackShared back_to_back_shared(const BackToBackTile& t, int steps, int element) {
  const int ring = t.stages * (t.tile_m + t.columns0) * t.tile_k * element;
  const int inner = t.in_registers ? 0 : t.tile_m * t.columns0 * element;
  const int staging = t.warps_m * t.warps_n * 16 * (t.tile_n / t.warps_n + kGemmStagePad) * 4;
  const int used = ring > inner + staging ? ring : inner + staging, weights = (used + 127) / 128 * 128;
  return {0, inner, weights, weights + steps * t.tile_n * t.columns0 * element};
}

}  // namespace heddle::tile
