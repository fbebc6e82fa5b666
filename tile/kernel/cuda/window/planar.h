// Windows over images whose rows are contiguous pixels: depthwise convolution and pooling in channels-first layout, in
// one or two dimensions, with any stride and dilation. An image is one channel of one input. A thread computes kAcross
// neighbouring outputs of a row, and neighbouring threads compute neighbouring outputs, so that shared pixels come from
// the L1. A row of the window is processed kTaps taps at a time. The pixels for these taps are loaded as vectors, which
// begin at multiples of kVector, and are used for all outputs of the thread.
//
//   struct Config {                             // for the other members see register_tiled.h
//     using X, Filter, Acc, Limits;
//     static constexpr int kWindow[2], kStride[2], kDilation[2], kAcross;
//     static constexpr int kWidth = 8;          // outputs passed to the epilogue at a time, divides kAcross
//     static constexpr int kVector = 8;         // pixels, divides the columns of images and kAcross * kStride[1]
//     static constexpr int kLead = 1;           // pixels of the first vector before a thread's first pixel
//     static constexpr int kTaps = 3;           // kDilation[1] * kTaps is a multiple of kVector, or kTaps = kWindow[1]
//     static constexpr auto kFold;
//   };
//
// The epilogue is that of tile/kernel/cuda/gemm/sm90.h, with batch = the image, row = the row of outputs and col = the
// first output in that row.
#pragma once

#include "tile/kernel/cuda/window/generic.h"

namespace heddle::tile::cuda {

// The outputs of one thread, with the current row of the thread's image and of the filter for this image.
template <typename Config>
struct PlanarRow {
  using X = typename Config::X;
  using Filter = typename Config::Filter;
  using Acc = typename Config::Acc;
  static constexpr int V = Config::kVector, kAcross = Config::kAcross, kStride = Config::kStride[1],
                       kDilation = Config::kDilation[1], kTaps = Config::kTaps, kLength = Config::kWindow[1];
  static constexpr bool kDot = Config::kFold == WindowFold::kDot;

  Acc (&acc)[kAcross];
  const X* row;
  bool inside;       // true if the row is inside the image
  int32_t x, width;  // position of the first vector; width of the image
  const Filter* filter;

  // Processes the next kCount taps of the filter row.
  template <int kCount>
  __device__ inline void fold() {
    constexpr int kPixels = Config::kLead + (kAcross - 1) * kStride + (kCount - 1) * kDilation + 1;
    constexpr int kVectors = (kPixels + V - 1) / V;
    Neighbours<X, V> pixels[kVectors];
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
#pragma unroll
      for (int i = 0; i < V; ++i) pixels[v].x[i] = convert<X>(empty_window<Config>());
      const int32_t at = x + v * V;
      if (inside && static_cast<uint32_t>(at) < static_cast<uint32_t>(width)) load_row<V>(pixels[v].x, row + at, V);
    }
#pragma unroll
    for (int t = 0; t < kCount; ++t) {
      Acc tap = Acc(1);
      if constexpr (kDot) tap = convert<Acc>(filter[t]);
#pragma unroll
      for (int a = 0; a < kAcross; ++a) {
        constexpr int kLead = Config::kLead;
        const int at = kLead + a * kStride + t * kDilation;
        const Acc v = convert<Acc>(pixels[at / V].x[at % V]);
        if constexpr (kDot) {
          acc[a] += v * tap;
        } else {
          acc[a] = fold_window<Config::kFold>(acc[a], v);
        }
      }
    }
    x += kCount * kDilation;
    if constexpr (kDot) filter += kCount;
  }

  __device__ inline void fold_all() {
#pragma unroll 1
    for (int part = 0; part < kLength / kTaps - (kLength % kTaps == 0); ++part) fold<kTaps>();
    fold<kLength % kTaps == 0 ? kTaps : kLength % kTaps>();
  }
};

// The kernel: one item per thread. The number of threads in a block is arbitrary.
template <typename Config, typename Epilogue>
__device__ inline void planar_window(const SlideArgs& args, const Epilogue& epilogue) {
  using Row = PlanarRow<Config>;
  using X = typename Config::X;
  using Acc = typename Config::Acc;
  using Filter = typename Config::Filter;
  constexpr int W = Config::kWidth, kAcross = Config::kAcross, kHeight = Config::kWindow[0];
  const auto item = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  if (item >= args.items) return;

  // Partition: this thread's columns, row and image.
  const int32_t line = args.by_across.divide(item), image = args.by_down.divide(line);
  const int32_t left = (item - line * args.across) * kAcross, top = line - image * args.down;
  const int32_t channel = image - args.by_pieces.divide(image) * args.pieces;
  const int32_t from_y = top * Config::kStride[0] - args.low[0],
                from_x = left * Config::kStride[1] - args.low[1] - Config::kLead;
  const X* origin = static_cast<const X*>(args.x) + int64_t(image) * args.in[0] * args.in[1];
  const Filter* filter = static_cast<const Filter*>(args.filters) + channel * args.filter_channel;

  Acc acc[kAcross];
#pragma unroll
  for (int a = 0; a < kAcross; ++a) acc[a] = empty_window<Config>();
  // A short window is fully unrolled, so that all of its loads are in flight at the same time.
  constexpr bool kShort = kHeight * Config::kWindow[1] * kAcross <= 512;
#pragma unroll kShort ? kHeight : 1
  for (int y = 0; y < kHeight; ++y) {
    const int32_t at = from_y + y * Config::kDilation[0];
    const bool inside = static_cast<uint32_t>(at) < static_cast<uint32_t>(args.in[0]);
    if (!kShort && !inside) continue;
    Row{acc, origin + int64_t(at) * args.in[1], inside, from_x, args.in[1], filter + y * Config::kWindow[1]}.fold_all();
  }
#pragma unroll
  for (int a = 0; a < kAcross; a += W) {
    Acc part[W];
#pragma unroll
    for (int i = 0; i < W; ++i) part[i] = acc[a + i];
    const int32_t rest = args.out[1] - left - a;
    if (rest > 0) epilogue(part, image, top, left + a, rest < W ? rest : W);
  }
}

}  // namespace heddle::tile::cuda
