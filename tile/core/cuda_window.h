// The contract between the CUDA window kernels and the scheduler.
#pragma once

#include "tile/core/config.h"
#include "tile/core/cuda_gemm.h"

namespace heddle::tile {

// A window slides over images [batch][in0][in1][in2][pixel]; spatial dimensions as in WindowShape (core/shape.h).
struct WindowArgs {
  const void* x;
  const void* filters;               // of a depthwise convolution
  int64_t filter_tap;                // distance of the taps of a filter,
  int64_t filter_channel;            // and of the filters, in elements
  int64_t items;                     // images * outputs * pieces of channels
  int32_t pixel, pieces;             // elements from pixel to pixel; pieces of kWidth channels
  int32_t in[3], out[3], window[3];  // of one image
  int32_t stride[3], dilation[3], low[3];
};
static_assert(sizeof(WindowArgs) == 120);

// Arguments for windows of two dimensions without dilation, of a size known at compile time
// (tile/kernel/cuda/window/register_tiled.h). Pointers and distances as in WindowArgs; all counts are below 2^31.
struct SlideArgs {
  const void* x;
  const void* filters;
  int64_t filter_tap, filter_channel;
  int32_t items;                  // threads: images * down * across * pieces
  int32_t pixel, pieces;          // elements from pixel to pixel; pieces of kWidth channels
  int32_t across, down;           // threads along a row of outputs and along a column
  int32_t in[2], out[2], low[2];  // of one image: rows, columns
  GemmDivisor by_pieces, by_across, by_down;
  int32_t unused;
};
static_assert(sizeof(SlideArgs) == 104);

}  // namespace heddle::tile
