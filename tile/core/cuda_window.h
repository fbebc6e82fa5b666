// What the scheduler and the window kernel for CUDA agree on.
#pragma once

#include "tile/core/config.h"

namespace heddle::tile {

// A window slides over images [batch][in0][in1][in2][channels]; spatial dimensions as in WindowShape (core/shape.h).
struct WindowArgs {
  const void* x;
  const void* filters;               // of a depthwise convolution
  int64_t filter_tap;                // distance of the taps of a filter,
  int64_t filter_channel;            // and of the filters, in elements
  int64_t items;                     // images * outputs * pieces of channels
  int32_t channels, pieces;          // pieces: of kWidth channels
  int32_t in[3], out[3], window[3];  // of one image
  int32_t stride[3], dilation[3], low[3];
};
static_assert(sizeof(WindowArgs) == 120);

}  // namespace heddle::tile
