// Kernels that slide a window over channels-last images: depthwise convolution and pooling. They are memory-bound. A
// thread computes kWidth neighbouring channels of one output, and neighbouring threads compute neighbouring channels.
// Taps in the padding are skipped. Pixels that neighbouring windows share are read from the caches.
//
//   struct Config {
//     using X = tile::half;                     // element type of the images in memory
//     using Filter = tile::half;                // element type of the filters (kDot)
//     using Acc = float;                        // accumulator type
//     static constexpr int kWidth = 8;          // divides the number of channels
//     static constexpr auto kFold = tile::WindowFold::kDot;
//   };
//
// The epilogue has the interface of tile/kernel/cuda/gemm/sm90.h. Its batch is the image, its row the output pixel, and
// its col the first channel.
#pragma once

#include "tile/arch/sm80/approx.h"
#include "tile/arch/sm80/convert.h"
#include "tile/core/cuda_window.h"
#include "tile/kernel/cuda/row.h"

namespace heddle::tile {

enum class WindowFold : int32_t { kDot, kSum, kProd, kMax, kMin };

namespace cuda {

// Combines an accumulator with an element. If either is NaN, the result is NaN.
template <WindowFold Fold, typename Acc>
__device__ inline Acc fold_window(Acc acc, Acc x) {
  if constexpr (Fold == WindowFold::kProd) {
    return acc * x;
  } else if constexpr (Fold == WindowFold::kMax && is_same<Acc, float>) {
    return max_or_nan(x, acc);
  } else if constexpr (Fold == WindowFold::kMin && is_same<Acc, float>) {
    return min_or_nan(x, acc);
  } else if constexpr (Fold == WindowFold::kMax) {
    return x > acc || x != x ? x : acc;
  } else if constexpr (Fold == WindowFold::kMin) {
    return x < acc || x != x ? x : acc;
  } else {
    return acc + x;
  }
}

// The result of an empty window. For a maximum or minimum, the lowest or highest value of the type in memory (Limits).
template <typename Config>
__device__ inline typename Config::Acc empty_window() {
  using Acc = typename Config::Acc;
  using Limits = typename Config::Limits;
  if constexpr (Config::kFold == WindowFold::kProd) {
    return Acc(1);
  } else if constexpr (Config::kFold == WindowFold::kMax) {
    return static_cast<Acc>(lowest<Limits>());
  } else if constexpr (Config::kFold == WindowFold::kMin) {
    return static_cast<Acc>(highest<Limits>());
  } else {
    return Acc(0);
  }
}

template <typename Acc, typename T, int W>
__device__ inline void load_channels(Acc (&v)[W], const T* from) {
  T raw[W];
  load_row<W>(raw, from, W);
#pragma unroll
  for (int i = 0; i < W; ++i) v[i] = convert<Acc>(raw[i]);
}

// The kernel. Each thread computes one work item. The number of threads may exceed the number of items.
template <typename Config, typename Epilogue>
__device__ inline void window(const WindowArgs& args, const Epilogue& epilogue) {
  using Acc = typename Config::Acc;
  using X = typename Config::X;
  constexpr int W = Config::kWidth;
  constexpr bool kDot = Config::kFold == WindowFold::kDot;
  const int64_t item = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (item >= args.items) return;

  // Split the item number into channel, output pixel and image.
  const int32_t pixels = args.out[0] * args.out[1] * args.out[2];
  const int64_t place = item / args.pieces;
  const int32_t channel = static_cast<int32_t>(item - place * args.pieces) * W;
  const auto image = static_cast<int32_t>(place / pixels),
             pixel = static_cast<int32_t>(place - int64_t(image) * pixels);
  const int32_t line = pixel / args.out[2], at[3] = {line / args.out[1], line % args.out[1], pixel % args.out[2]};

  // The range of taps inside the image.
  int32_t first[3], last[3], start[3];
#pragma unroll
  for (int d = 0; d < 3; ++d) {
    start[d] = at[d] * args.stride[d] - args.low[d];
    const int32_t step = args.dilation[d];
    first[d] = start[d] >= 0 ? 0 : (-start[d] + step - 1) / step;
    last[d] = start[d] >= args.in[d] ? 0 : (args.in[d] - 1 - start[d]) / step + 1;
    if (last[d] > args.window[d]) last[d] = args.window[d];
  }
  const int64_t row = int64_t(args.in[2]) * args.pixel, plane = row * args.in[1];
  const X* origin = static_cast<const X*>(args.x) + image * (plane * args.in[0]) + channel;
  Acc acc[W];
#pragma unroll
  for (int i = 0; i < W; ++i) acc[i] = empty_window<Config>();
  for (int32_t d = first[0]; d < last[0]; ++d) {
    for (int32_t y = first[1]; y < last[1]; ++y) {
      const X* from = origin + (start[0] + d * args.dilation[0]) * plane + (start[1] + y * args.dilation[1]) * row +
                      int64_t(start[2]) * args.pixel;
      for (int32_t x = first[2]; x < last[2]; ++x) {
        Acc v[W];
        load_channels(v, from + int64_t(x) * args.dilation[2] * args.pixel);
        if constexpr (kDot) {
          using Filter = typename Config::Filter;
          const int32_t tap = (d * args.window[1] + y) * args.window[2] + x;
          const Filter* filter = static_cast<const Filter*>(args.filters) + tap * args.filter_tap;
          Acc w[W];
          if (args.filter_channel == 1) {
            load_channels(w, filter + channel);
          } else {
#pragma unroll
            for (int i = 0; i < W; ++i) w[i] = convert<Acc>(filter[(channel + i) * args.filter_channel]);
          }
#pragma unroll
          for (int i = 0; i < W; ++i) acc[i] += v[i] * w[i];
        } else {
#pragma unroll
          for (int i = 0; i < W; ++i) acc[i] = fold_window<Config::kFold>(acc[i], v[i]);
        }
      }
    }
  }
  epilogue(acc, image, pixel, channel, W);
}

}  // namespace cuda
}  // namespace heddle::tile
