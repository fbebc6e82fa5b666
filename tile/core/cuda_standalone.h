// Arguments and constants of the CUDA scatter and selection kernels, shared by the kernels and the code that launches
// them.
#pragma once

#include <stdint.h>

namespace heddle::tile {

// Common arguments of the scatter kernels. y has the shape [outer][rows][inner]. It is a copy of `data` in which
// updates replace some rows or are combined with them.
struct ScatterArgs {
  const void* data;
  const void* indices;
  const void* updates;
  void* y;
  int64_t rows, inner;
  int64_t count;  // updates per column
};

// One of the dimensions that index the columns of a ScatterElements (all dimensions except the scatter axis). A column
// has no updates if its index in this dimension is `indexed` or greater.
struct ScatterDim {
  int64_t extent, indexed, stride, index_stride;  // strides of the updates and of the indices, in elements
};
inline constexpr int kScatterMostDims = 16;
// 2^shares threads process one column (outer, inner). Thread i of these processes the rows i, i + 2^shares, ...
struct ScatterElementsArgs {
  ScatterArgs common;
  int64_t threads;           // outer * 2^shares * inner
  int64_t step, index_step;  // strides along a column: of the updates, and of the indices
  int32_t shares;
  int32_t inner_dims, dims;  // entries of `dim`: of `inner` (these come first); in total
  int32_t unused;
  ScatterDim dim[kScatterMostDims];
};

// Arguments of ScatterNd. A tuple of `depth` indices selects a row, and `outer` is 1. Each warp processes `block_rows`
// rows of `chunk` columns.
struct ScatterNdArgs {
  ScatterArgs common;
  int64_t block_rows, chunk, chunks;
  int32_t depth, unused;
  int64_t extent[kScatterMostDims];
};
inline constexpr int kScatterChunk = 512;  // tuples per pass: a block keeps their row indices in shared memory

// Arguments of the selection kernel. It selects the first k elements of each column of x, and stores their values and
// positions. x has the shape [outer][n][inner], the results [outer][k][inner]. Each block processes one column.
struct SelectArgs {
  const void* x;
  void* values;
  int64_t* positions;
  void* list;  // k elements per column in global memory, if k > kSelectTile
  int64_t n, k, inner;
};
inline constexpr int kSelectTile = 2048;  // maximum number of elements sorted in shared memory at a time
// Bytes of shared memory that follow the tile: counts by digit, counts by warp, and four other numbers.
inline constexpr int kSelectCountBytes = 4 * (256 + 32 + 4);
// The size of a key with its position, for elements of `element` bytes.
inline constexpr int select_item_bytes(int64_t element) {
  return element > 4 ? 16 : 8;
}

}  // namespace heddle::tile
