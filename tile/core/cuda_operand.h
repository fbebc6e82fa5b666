// Operand descriptions that the scheduler passes to CUDA kernels. They are plain data with the layout of a kernel's
// arguments.
#pragma once

#include "tile/core/config.h"

namespace heddle::tile {

// Channels-last images, read as the matrix of a convolution. Rows are (image, output pixel); k is (tap, channel). A
// convolution of rank `Rank` uses only the last `Rank` of the three spatial dimensions. Strides are in elements.
struct GemmImageArgs {
  const void* data;
  int64_t group;                       // stride between groups (batches of the GEMM), usually equal to `channels`
  int32_t images, channels, pixel;     // channels per group; stride between pixels
  int32_t size[3], out[3], window[3];  // spatial extents of an image, of the output, of the filter
  int32_t stride[3], dilation[3];
  int32_t before[3], after[3];  // padding before and after the image
};
static_assert(sizeof(GemmImageArgs) == 112);

// The windows of a convolution for tile/kernel/cuda/gemm/sm90_im2col.h. Pairs are (width, height).
struct GemmWindowsArgs {
  int32_t out[2];    // windows per image
  int32_t first[2];  // coordinates of the first window: -padding
  int32_t stride[2], dilation[2];
  int32_t taps;           // number of taps along the width
  int32_t channel_tiles;  // k-tiles per tap
};
static_assert(sizeof(GemmWindowsArgs) == 40);

// A matrix of integers of few bits, packed in the order in which the kernel of tile/kernel/cuda/gemm/packed.h reads it
// (tile/core/pack.h). `third`: the zero points of the blocks, or the table of the numbers that the integers stand for.
// Scales, zero points and the table have the type in which the kernel multiplies.
struct GemmPackedArgs {
  const void *words, *scales, *third;
  int32_t exponent;  // the scales are stored times 2^exponent
  int32_t groups;    // groups of 16 rows
  int32_t depths;    // fragments along k
  int32_t blocks;    // scales of a row, including the padding
};
static_assert(sizeof(GemmPackedArgs) == 40);

// The same for gemm_skinny(), with the rows of words in the layout of the op `dequantize` and f32 scales.
struct GemmPackedRowsArgs {
  const void *words, *scales, *third;
  int32_t rows, depth;           // integers
  int32_t words_of_row, blocks;  // blocks of a row
};
static_assert(sizeof(GemmPackedRowsArgs) == 40);

}  // namespace heddle::tile
