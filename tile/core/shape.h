// Sizes and blockings of the contraction kernels as plain numbers, shared by the kernels and the scheduler.
#pragma once

#include <stdint.h>

#include "tile/core/pack.h"

namespace heddle::tile {

inline constexpr int kBatchDims = 4;

// Splits rows into micro tiles of only two heights, MR and MR - 1, so that few micro-kernels need to be compiled.
struct RowSplit {
  int64_t mr, tiles, tall;  // `tall` tiles of mr rows, then tiles - tall tiles of mr - 1 rows
};
constexpr RowSplit split_rows(int64_t rows, int64_t max_rows) {
  if (rows <= 0) return {1, 0, 0};
  const int64_t tiles = (rows + max_rows - 1) / max_rows, mr = (rows + tiles - 1) / tiles;
  return {mr, tiles, rows - tiles * (mr - 1)};
}

// True if rows with this stride conflict in a first-level cache (8 ways, sets repeat every 4 KiB) when a micro tile
// advances along `rows` rows at the same time.
constexpr bool rows_collide(int64_t stride_bytes, int64_t rows) {
  int64_t a = stride_bytes < 0 ? -stride_bytes : stride_bytes, b = 4096;
  while (a != 0) {
    const int64_t r = b % a;
    b = a, a = r;
  }
  return rows * b > 4 * 4096;  // more than four rows per set: the other ways are for B and the accumulators
}

// The row stride of a copied block in elements: an odd number of cache lines, at least k elements.
constexpr int64_t copied_stride(int64_t k, int64_t element_bytes) {
  const int64_t line = 64 / element_bytes;
  return ((k + line - 1) / line | 1) * line;
}

// The number of micro tiles stored together if the results of neighbouring rows are neighbours in memory.
inline constexpr int64_t kTilesTogether = 16;

// The size and blocking of gemm(). split_rows() splits the output rows into micro tiles.
struct GemmShape {
  int64_t batch[kBatchDims] = {1, 1, 1, 1};  // extents of the batch dimensions, outermost first
  int64_t m = 0, n = 0, k = 0;
  int64_t tiles = 0, tall = 0;
  int64_t block_tiles = 1;   // micro tiles per task
  int64_t block_panels = 1;  // panels of B per task
  int64_t block_k = 0;       // gemm_long(): steps of k that are summed before the result is added to the total

  constexpr int64_t depth() const { return block_k > 0 && block_k < k ? block_k : k; }
  constexpr int64_t batches() const { return batch[0] * batch[1] * batch[2] * batch[3]; }
  constexpr int64_t m_blocks() const { return (tiles + block_tiles - 1) / block_tiles; }
  constexpr int64_t n_blocks(int64_t width) const { return (panel_count(n, width) + block_panels - 1) / block_panels; }
  constexpr int64_t tasks(int64_t width) const { return batches() * m_blocks() * n_blocks(width); }
  constexpr int64_t tile_row(int64_t tile, int64_t mr) const { return tile * mr - (tile > tall ? tile - tall : 0); }

  // The offset of the batch with linear index `index` in an operand with the batch strides `stride`.
  constexpr int64_t offset(int64_t index, const int64_t (&stride)[kBatchDims]) const {
    int64_t at = 0;
    for (int d = kBatchDims - 1; d >= 0; --d) {
      if (batch[d] == 1) continue;  // skips a division, which takes tens of cycles
      at += index % batch[d] * stride[d];
      index /= batch[d];
    }
    return at;
  }

  // The sizes, in elements, of the scratch areas for the accumulators, a panel of B and a block of A. Each area begins
  // on a cache line.
  constexpr int64_t accumulator_elements(int64_t mr, int64_t width) const { return mr * width; }
  constexpr int64_t panel_elements(int64_t width) const { return (depth() * width + 15) / 16 * 16; }
  constexpr int64_t block_elements(int64_t mr, int64_t element_bytes) const {
    return (block_tiles < tiles ? block_tiles : tiles) * mr * copied_stride(depth(), element_bytes);
  }
  // The number of elements for the sums of a task and their rounding errors, if k is split.
  constexpr int64_t sum_elements(int64_t mr, int64_t width) const {
    const int64_t panels = panel_count(n, width);
    return block_k == 0 ? 0
                        : 2 * (block_tiles < tiles ? block_tiles : tiles) *
                              (block_panels < panels ? block_panels : panels) * accumulator_elements(mr, width);
  }
  constexpr int64_t scratch_bytes(int64_t mr, int64_t width, int64_t element_bytes, bool copies_a, bool packs_b,
                                  bool along_rows = false) const {
    return element_bytes *
           ((along_rows ? kTilesTogether : 1) * accumulator_elements(mr, width) + sum_elements(mr, width) +
            (packs_b ? panel_elements(width) : 0) + (copies_a ? block_elements(mr, element_bytes) : 0));
  }
};

// The bounding box of the taps for which a panel of filters is not entirely zero. The dimensions are those of the
// window: (depth, height, width).
struct ConvTaps {
  int32_t first[3], end[3];
};

// The size and blocking of conv(). A convolution has 1 to 3 spatial dimensions in the order (depth, height, width).
// Missing leading dimensions have extent 1.
struct ConvShape {
  int64_t batch = 1, groups = 1;
  int64_t c = 0, o = 0;  // input and output channels per group
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, low[3] = {0, 0, 0}, lhs_dilation[3] = {1, 1, 1};
  int64_t tiles = 0, tall = 0;  // micro tiles per output row, from split_rows()
  int64_t block_rows = 1;       // output rows per task
  int64_t block_panels = 1;     // panels of filters per task
  int64_t block_k = 0;          // conv_long(): products that are summed before the result is added to the total
  int64_t block_pixels = 0;     // conv_planar(): pixels of an output row per task
  int64_t phases = 1;           // phases of the filter panels (PanelSource)
  int64_t results[2] = {0, 0};  // interleaving epilogue: the range [first, end) of an output row's results

  constexpr int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  constexpr int64_t k() const { return taps() * c; }
  constexpr int64_t row_blocks() const { return (out[1] + block_rows - 1) / block_rows; }
  constexpr int64_t panels(int64_t width) const { return phases * panel_count(o / phases, width); }
  constexpr int64_t n_blocks(int64_t width) const { return (panels(width) + block_panels - 1) / block_panels; }
  constexpr int64_t tasks(int64_t width) const { return batch * groups * out[0] * row_blocks() * n_blocks(width); }
  constexpr int64_t tile_pixel(int64_t tile, int64_t mr) const { return tile * mr - (tile > tall ? tile - tall : 0); }
  // The input extent along dimension d that `outputs` consecutive outputs read.
  constexpr int64_t reach(int d, int64_t outputs) const {
    return (outputs - 1) * stride[d] + (kernel[d] - 1) * dilation[d] + 1;
  }
  // The distance in elements between pixels of a copied block: the channels, plus a cache line if rows would collide.
  constexpr int64_t copied_pixel(int64_t element_bytes) const {
    return c * stride[2] * element_bytes % 2048 == 0 ? c + 64 / element_bytes : c;
  }
  // lines_of_tap() is the number of input lines from the first to the last that one line of the window reads for `rows`
  // output rows. copied_lines() is the number that all lines of the window need. If dilation leaves gaps
  // (leaves_lines()), a copied block stores the input lines of each line of the window separately.
  constexpr int64_t lines_of_tap(int64_t rows) const { return (rows - 1) * stride[1] + 1; }
  constexpr bool leaves_lines(int64_t rows) const { return kernel[1] > 1 && dilation[1] > lines_of_tap(rows); }
  constexpr int64_t copied_lines(int64_t rows) const {
    return leaves_lines(rows) ? kernel[1] * lines_of_tap(rows) : reach(1, rows);
  }
  // The number of elements in the copied block of input lines for `rows` output rows.
  constexpr int64_t block_elements(int64_t rows, int64_t element_bytes) const {
    return kernel[0] * copied_lines(rows) * reach(2, out[2]) * copied_pixel(element_bytes);
  }
  // The bytes of the offset tables of `phases` panels. A table has two offsets per contiguous run of A, for up to
  // taps() runs.
  constexpr int64_t offset_bytes() const { return (2 * phases * taps() * 8 + 63) / 64 * 64; }
  // The number of accumulators, in units of a micro tile.
  constexpr int64_t tiles_together() const { return phases < kTilesTogether ? kTilesTogether / phases : 1; }
  constexpr int64_t accumulators(bool along_rows) const {
    if (along_rows && tiles > 0) return phases * (tiles < tiles_together() ? tiles : tiles_together());
    return block_k > 0 ? 1 + 2 * tiles : 1;
  }
  constexpr int64_t scratch_bytes(int64_t mr, int64_t width, int64_t element_bytes, bool copies,
                                  bool along_rows = false) const {
    const int64_t rows = block_rows < out[1] ? block_rows : out[1];
    return offset_bytes() +
           element_bytes * (accumulators(along_rows) * mr * width + (copies ? block_elements(rows, element_bytes) : 0));
  }

  // The remaining members are for conv_planar(). Its tasks are blocks of rows and pixels, with all channels of a group.

  constexpr int64_t pixel_blocks() const { return (out[2] + block_pixels - 1) / block_pixels; }
  constexpr int64_t planar_tasks() const { return batch * groups * out[0] * row_blocks() * pixel_blocks(); }
  // In a copied line, pixels are ordered by their index modulo the stride. Vector loads may read beyond the end of a
  // line; this is the number of extra elements.
  static constexpr int64_t kPlanarSlack = 128;
  // The number of output rows that are computed together if their windows share input lines. The last rows computed
  // together may lie beyond the end of the block. Their results are dropped, but their windows read lines after the
  // copied ones, so the buffer has space for these lines.
  static constexpr int64_t kPlanarRows = 4;
  constexpr int64_t phase_elements(int64_t element_bytes) const {
    const int64_t slack = 64 / element_bytes;
    return copied_stride((reach(2, block_pixels) + stride[2] - 1) / stride[2] + slack, element_bytes);
  }
  constexpr int64_t planar_line(int64_t element_bytes) const { return stride[2] * phase_elements(element_bytes); }
  constexpr int64_t planar_elements(int64_t element_bytes) const {
    const int64_t rows = block_rows < out[1] ? block_rows : out[1];
    return (c * kernel[0] * copied_lines(rows) + kPlanarRows * stride[1]) * planar_line(element_bytes) + kPlanarSlack;
  }
  // The number of pixels of a row that are computed for all channels before the next pixels, a multiple of `pixels` (a
  // micro tile). The input lines that they read fit half of a first-level cache.
  constexpr int64_t pixels_together(int64_t pixels, int64_t element_bytes) const {
    constexpr int64_t kBytes = 16 << 10;
    const int64_t tiles = kBytes / (c * kernel[0] * kernel[1] * element_bytes * pixels);
    return (tiles < 1 ? 1 : tiles) * pixels;
  }
  constexpr int64_t planar_offset_bytes() const { return (k() * 8 + 63) / 64 * 64; }
  constexpr int64_t planar_scratch_bytes(int64_t element_bytes, bool copies) const {
    return planar_offset_bytes() + (copies ? element_bytes * planar_elements(element_bytes) : 0);
  }
};

// The size of window() and window_rows(). Dimensions are as in ConvShape. A task computes one row of output pixels.
struct WindowShape {
  int64_t batch = 1, c = 0;
  int64_t pixel = 0;  // window() only: elements from one input pixel to the next; 0 means c
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, low[3] = {0, 0, 0};

  constexpr int64_t tasks() const { return batch * out[0] * out[1]; }
  constexpr int64_t pitch() const { return pixel > 0 ? pixel : c; }
  // True if a depthwise convolution of this shape can multiply taps in pairs.
  constexpr bool has_pairs_of_taps() const {
    return kernel[0] == 1 && kernel[1] <= 7 && kernel[2] >= 2 && kernel[2] <= 7 && dilation[2] == 1 && stride[2] <= 2;
  }

  // The remaining members are for window_rows(). It processes a few output rows at a time, in blocks of pixels. It
  // folds the input lines of each output row into a single line, which stays in the first-level cache.

  static constexpr int64_t kLineElements = 2048, kMostLines = 16;
  // Extra elements, since whole vectors are read and written at the end of a line.
  static constexpr int64_t kLineSlack = 64;
  // The number of input pixels that a window covers after its first pixel.
  constexpr int64_t reach() const { return (kernel[2] - 1) * dilation[2]; }
  // The number of output pixels per block. A block begins at a multiple of the vector size for every type. It is much
  // longer than a window, so that few input pixels are read twice.
  constexpr int64_t block_pixels() const {
    int64_t step = kLineSlack;
    while (step > 1 && c * (step / 2) % kLineSlack == 0) step /= 2;
    int64_t pixels = kLineElements / (c * stride[2]);
    if (pixels < 4 * reach()) pixels = 4 * reach();
    pixels = (pixels + step - 1) / step * step;
    return pixels < step ? step : pixels > out[2] ? out[2] : pixels;
  }
  constexpr int64_t line_pixels() const { return (block_pixels() - 1) * stride[2] + reach() + 1; }
  constexpr int64_t line_elements() const { return line_pixels() * c + kLineSlack; }
  // The elements of a line that belong to one phase. Pixels are grouped by their index modulo the stride; with stride 1
  // there is one phase.
  constexpr int64_t phase_elements() const { return (line_pixels() + stride[2] - 1) / stride[2] * c + kLineSlack; }
  constexpr int64_t lines() const {
    const int64_t fit = kLineElements / line_elements();
    return fit < 1 ? 1 : fit > kMostLines ? kMostLines : fit;
  }
  constexpr int64_t scratch_bytes(int64_t element_bytes) const {
    const int64_t phases = stride[2] > 1 ? stride[2] * phase_elements() : 0;
    return element_bytes * (lines() * line_elements() + phases);
  }
};

}  // namespace heddle::tile
