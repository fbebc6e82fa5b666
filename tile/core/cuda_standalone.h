// Arguments and constants of the CUDA scatter and selection kernels, shared by kernels and launches.
#pragma once

#include <stdint.h>

namespace heddle::tile {

// y, as [outer][rows][inner], is `data` with rows replaced by, or combined with, updates.
struct ScatterArgs {
  const void* data;
  const void* indices;
  const void* updates;
  void* y;
  int64_t rows, inner;
  int64_t count;  // updates per column
};

// A dimension of the columns of a ScatterElements. Columns from index `indexed` on have no updates.
struct ScatterDim {
  int64_t extent, indexed, stride, index_stride;  // strides of the updates and of the indices, in elements
};
inline constexpr int kScatterMostDims = 16;
// 2^shares threads share a column (outer, inner): thread i has the rows i, i + 2^shares, ...
struct ScatterElementsArgs {
  ScatterArgs common;
  int64_t threads;           // outer * 2^shares * inner
  int64_t step, index_step;  // strides between updates of a column, and between their indices
  int32_t shares;
  int32_t inner_dims, dims;  // entries of `dim`: for `inner`, last first; in total, `outer` after them
  int32_t unused;
  ScatterDim dim[kScatterMostDims];
};

// A tuple of `depth` indices selects a row; outer is 1. A warp has `block_rows` rows of `chunk` columns.
struct ScatterNdArgs {
  ScatterArgs common;
  int64_t block_rows, chunk, chunks;
  int32_t depth, unused;
  int64_t extent[kScatterMostDims];
};
inline constexpr int kScatterChunk = 512;  // tuples whose row numbers a block keeps in shared memory

// Selects values, positions [outer][k][inner] from x [outer][n][inner]; each block has one column.
struct SelectArgs {
  const void* x;
  void* values;
  int64_t* positions;
  void* list;  // k elements per column in global memory, if k > kSelectTile
  int64_t n, k, inner;
};
inline constexpr int kSelectTile = 2048;  // elements sorted in shared memory at a time; smaller columns whole
// Shared memory after the tile: counts by digit, counts by warp, and four numbers.
inline constexpr int kSelectCountBytes = 4 * (256 + 32 + 4);
// Bytes of a key with its position, for elements of this size in bytes.
inline constexpr int select_item_bytes(int64_t element) {
  return element > 4 ? 16 : 8;
}

}  // namespace heddle::tile
