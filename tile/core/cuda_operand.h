// What the scheduler and the kernels for CUDA agree on about operands: plain data, as it lies in an argument block.
#pragma once

#include "tile/core/config.h"

namespace heddle::tile {

// Images, channels last, as the matrix of a convolution: rows are (image, output pixel), k is (tap, channel). Of the
// three spatial dimensions the last `Rank` are used. Strides in elements.
struct GemmImageArgs {
  const void* data;
  int64_t group;                       // from group to group (a batch of the GEMM): channels, as a rule
  int32_t images, channels, pixel;     // channels of one group; elements from pixel to pixel
  int32_t size[3], out[3], window[3];  // spatial lengths of an image, of the output, of the filter
  int32_t stride[3], dilation[3];
  int32_t before[3], after[3];  // padding
};
static_assert(sizeof(GemmImageArgs) == 112);

// The windows of a convolution for tile/kernel/cuda/gemm/sm90_im2col.h: (width, height) each.
struct GemmWindowsArgs {
  int32_t out[2];    // windows of an image
  int32_t first[2];  // where the first window begins: -padding
  int32_t stride[2], dilation[2];
  int32_t taps;           // along the width
  int32_t channel_tiles;  // k-tiles of a tap
};
static_assert(sizeof(GemmWindowsArgs) == 40);

}  // namespace heddle::tile
