// What the kernels of scatters and selections for CUDA and their launches agree on.
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
  int64_t count;  // updates of a column
};

// A dimension of the columns of a scatter of elements: columns from `indexed` on have no updates.
struct ScatterDim {
  int64_t extent, indexed, stride, index_stride;  // in elements; strides of the updates and of the indices
};
inline constexpr int kScatterMostDims = 16;
// 2^shares threads share a column (outer, inner): each has every so-manieth of its rows.
struct ScatterElementsArgs {
  ScatterArgs common;
  int64_t threads;           // outer * 2^shares * inner
  int64_t step, index_step;  // from one update of a column to the next one; the same for its index
  int32_t shares;
  int32_t inner_dims, dims;  // those of `inner`, last first, then those of `outer`
  int32_t unused;
  ScatterDim dim[kScatterMostDims];
};

// A row is where a tuple of `depth` indices says; outer is 1. A warp has `block_rows` rows of `chunk` columns.
struct ScatterNdArgs {
  ScatterArgs common;
  int64_t block_rows, chunk, chunks;
  int32_t depth, unused;
  int64_t extent[kScatterMostDims];
};
inline constexpr int kScatterChunk = 512;  // tuples whose rows a block has in shared memory

// values, positions [outer][k][inner] from x [outer][n][inner]; a block has a column.
struct SelectArgs {
  const void* x;
  void* values;
  int64_t* positions;
  void* list;  // room for k elements of a column where a block's shared memory has none
  int64_t n, k, inner;
};
inline constexpr int kSelectTile = 2048;  // elements that are sorted in shared memory, and below which all are
// Behind the tile: counts of digits, of warps, and four numbers.
inline constexpr int kSelectCountBytes = 4 * (256 + 32 + 4);
// Bytes of a key with its position, by the size of an element.
inline constexpr int select_item_bytes(int64_t element) {
  return element > 4 ? 16 : 8;
}

}  // namespace heddle::tile
