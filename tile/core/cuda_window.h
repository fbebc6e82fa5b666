// The kernel arguments of the CUDA window kernels (pooling and depthwise convolution), shared with the scheduler.
#pragma once

#include "tile/core/config.h"
#include "tile/core/cuda_gemm.h"

namespace heddle::tile {

// The arguments of a window that slides over images [batch][in0][in1][in2][pixel]. The spatial dimensions are those of
// WindowShape (core/shape.h).
struct WindowArgs {
  const void* x;
  const void* filters;               // the filters of a depthwise convolution
  int64_t filter_tap;                // the stride between the taps of a filter, in elements
  int64_t filter_channel;            // the stride between filters, in elements
  int64_t items;                     // images * outputs * pieces
  int32_t pixel, pieces;             // the stride between pixels, in elements; the number of pieces of kWidth channels
  int32_t in[3], out[3], window[3];  // the extents of an input image, an output image and the window
  int32_t stride[3], dilation[3], low[3];
};
static_assert(sizeof(WindowArgs) == 120);

// The arguments of two-dimensional windows without dilation whose size is known at compile time
// (tile/kernel/cuda/window/register_tiled.h). Pointers and strides are as in WindowArgs; all counts are below 2^31.
struct SlideArgs {
  const void* x;
  const void* filters;
  int64_t filter_tap, filter_channel;
  int32_t items;                  // the number of threads: images * down * across * pieces
  int32_t pixel, pieces;          // the stride between pixels, in elements; the number of pieces of kWidth channels
  int32_t across, down;           // the number of threads along a row and along a column of outputs
  int32_t in[2], out[2], low[2];  // (rows, columns) of an input image, of an output image, of the padding before
  GemmDivisor by_pieces, by_across, by_down;
  int32_t unused;
};
static_assert(sizeof(SlideArgs) == 104);

// The arguments of tile/kernel/cuda/window/depthwise_wgrad.h. All counts of elements are below 2^31.
struct DepthwiseWgradArgs {
  const void* image;     // [image][in0][in1][channel]
  const void* gradient;  // [image][out0][out1][channel]
  void* partial;         // [part][tap][channel], with the strides p_split and p_row in elements
  int64_t p_row, p_split;
  int32_t channels, image_pixel, gradient_pixel;  // the latter: strides between pixels, in elements
  int32_t in[2], out[2];                          // (rows, columns) of an image and of the outputs
  int32_t stride_y, low_y;
  int32_t lines, part;   // rows of outputs of all images, and of one part of k
  int32_t steps;         // columns of an image divided by the stride, rounded up
  int32_t pieces, rows;  // threads of a block along the channels and along rows
  GemmDivisor by_rows;   // divides by out[0]
};
static_assert(sizeof(DepthwiseWgradArgs) == 104);

}  // namespace heddle::tile
