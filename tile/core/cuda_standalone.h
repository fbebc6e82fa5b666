// Arguments and constants of the CUDA scatter and selection kernels, shared by the kernels and the code that launches
// them.
#pragma once

#include <stdint.h>

namespace heddle::tile {

// Common arguments of the scatter kernels. y has the shape [outer][rows][inner]. It is a copy of `data`, or has the
// same value everywhere, except that updates replace some rows or are combined with them.
struct ScatterArgs {
  const void* data;
  const void* indices;
  const void* updates;
  void* y;
  int64_t rows, inner;
  int64_t count;     // updates per column
  uint64_t fill[2];  // the bits of that value, repeated
};
// What y holds before the updates: a copy of `data`, the value `fill`, or, for a scatter in place, its own old content.
enum class ScatterFrom { kData, kValue, kPlace };

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

// Arguments of the scatters that are divided by updates instead of rows of y. `outer` is 1: of a scatter of slices, a
// row is what a tuple of `dims` indices selects; of a scatter of elements, it is one element of y, and every update is
// one element. A launch that copies or fills y comes first.
struct ScatterStep {
  int64_t extent;  // of the indexed data (slices); of the updates (elements)
  // Of elements: from one update to the next along this dimension, in y and in the indices. Along the axis of the
  // scatter, the index decides and `stride` is 0.
  int64_t stride, index_stride;
};
struct ScatterUpdatesArgs {
  ScatterArgs common;
  int64_t bytes;                     // of y
  int64_t axis_extent, axis_stride;  // of elements: of y along the axis of the scatter
  void* list;                        // entries in the order of their rows, one per update; first sorted in chunks
  void* merged;                      // the sorted list, if there are several chunks; else the same as `list`
  void* partials;                    // two per run and column
  int32_t dims, unused;
  ScatterStep dim[kScatterMostDims];  // of slices: in order; of elements: last dimension first
};
inline constexpr int kScatterSortThreads = 1024, kScatterSortChunk = 4096;
inline constexpr int kScatterEntryBytes = 8;                         // a row and the number of an update
inline constexpr int kScatterMergeWarps = 8;                         // which share the chunks
inline constexpr int kScatterStrips = 8, kScatterStripColumns = 32;  // of a block that adds partial results

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
