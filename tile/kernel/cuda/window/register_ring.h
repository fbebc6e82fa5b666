// Depthwise convolution and pooling over channels-last images in one or two dimensions, for windows with long rows. The
// kernel is compute-bound. A thread computes kAcross adjacent outputs of kWidth channels. A ring of registers holds the
// pixels that these outputs need for one tap. The next tap needs one new pixel and reuses all others. So each tap costs
// one load of a pixel and one load of a filter element, whatever kAcross is. The size of the code does not grow with
// the window.
// Adjacent threads process adjacent channels.
//
//   struct Config {                             // members are those of register_tiled.h with the same names
//     using X, Filter, Acc, Limits;
//     static constexpr int kWidth, kWindow[2], kStride[2], kAcross;
//     static constexpr bool kWhole, kPacked;    // kWhole: kAcross divides the number of output columns
//     static constexpr auto kFold;
//   };
//
// The epilogue is that of generic.h.
#pragma once

#include "tile/kernel/cuda/window/generic.h"

namespace heddle::tile::cuda {

// Loads the pixels of an image row, in the order in which they enter the ring.
template <typename Config>
struct RingPixels {
  using X = typename Config::X;
  static constexpr int W = Config::kWidth;

  const X* next;  // address of the next pixel, at the thread's channels
  int32_t x, width, channels;

  // Loads the next pixel. In the padding, returns the neutral value of the fold.
  __device__ inline Neighbours<X, W> load() {
    Neighbours<X, W> pixel;
#pragma unroll
    for (int i = 0; i < W; ++i) pixel.x[i] = convert<X>(empty_window<Config>());
    if (static_cast<uint32_t>(x) < static_cast<uint32_t>(width)) load_row<W>(pixel.x, next, W);
    next += channels, ++x;
    return pixel;
  }
};

// Loads the taps of one row of a filter.
template <typename Config>
struct RingFilter {
  using Filter = typename Config::Filter;
  using Acc = typename Config::Acc;
  static constexpr int W = Config::kWidth;

  const Filter* next;
  int64_t tap, channel;  // strides, in elements

  __device__ inline void load(Acc (&taps)[W]) {
    if constexpr (Config::kPacked) {
      load_channels(taps, next);
    } else {
#pragma unroll
      for (int i = 0; i < W; ++i) taps[i] = convert<Acc>(next[i * channel]);
    }
    next += tap;
  }
};

template <typename Config>
struct RegisterRing {
  using X = typename Config::X;
  using Acc = typename Config::Acc;
  static constexpr int W = Config::kWidth, kAcross = Config::kAcross, kStride = Config::kStride[1];
  static constexpr int kLength = Config::kWindow[1];
  static constexpr bool kDot = Config::kFold == WindowFold::kDot;
  // kPixels is the number of pixels that a tap needs. kRing is kPixels rounded up to a multiple of kAhead, so that
  // the same slots hold the prefetched pixels in each pass over the ring.
  static constexpr int kPixels = kStride * (kAcross - 1) + 1, kAhead = 4,
                       kRing = (kPixels + kAhead - 1) / kAhead * kAhead;

  Acc acc[kAcross][W];
  Acc ring[kRing][W];
  Neighbours<X, W> ahead[kAhead];

  __device__ inline void enter(int slot, const Neighbours<X, W>& pixel) {
#pragma unroll
    for (int i = 0; i < W; ++i) ring[slot][i] = convert<Acc>(pixel.x[i]);
  }

  // Computes kTaps taps. The first pixel of the first tap must be in slot 0.
  template <int kTaps>
  __device__ inline void turn(RingPixels<Config>& pixels, RingFilter<Config>& filter) {
#pragma unroll
    for (int t = 0; t < kTaps; ++t) {
      enter((t + kPixels - 1) % kRing, ahead[t % kAhead]);
      ahead[t % kAhead] = pixels.load();
      Acc taps[W] = {};
      if constexpr (kDot) filter.load(taps);
#pragma unroll
      for (int a = 0; a < kAcross; ++a) {
#pragma unroll
        for (int i = 0; i < W; ++i) {
          const Acc v = ring[(t + a * kStride) % kRing][i];
          if constexpr (kDot) {
            acc[a][i] += v * taps[i];
          } else {
            acc[a][i] = fold_window<Config::kFold>(acc[a][i], v);
          }
        }
      }
    }
  }

  // Computes one row of the window.
  __device__ inline void row(RingPixels<Config> pixels, RingFilter<Config> filter) {
#pragma unroll
    for (int p = 0; p + 1 < kPixels; ++p) enter(p, pixels.load());
#pragma unroll
    for (int p = 0; p < kAhead; ++p) ahead[p] = pixels.load();
#pragma unroll 1
    for (int turns = 0; turns < kLength / kRing; ++turns) turn<kRing>(pixels, filter);
    turn<kLength % kRing>(pixels, filter);
  }
};

// The kernel. Each thread processes one item. The total number of threads is arbitrary.
template <typename Config, typename Epilogue>
__device__ inline void register_ring(const SlideArgs& args, const Epilogue& epilogue) {
  using Ring = RegisterRing<Config>;
  using X = typename Config::X;
  using Filter = typename Config::Filter;
  constexpr int W = Config::kWidth, kAcross = Config::kAcross, kHeight = Config::kWindow[0];
  const auto item = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  if (item >= args.items) return;

  // Splits the item number into image, row, columns and channels; channels vary fastest.
  const int32_t place = args.by_pieces.divide(item), line = args.by_across.divide(place),
                image = args.by_down.divide(line);
  const int32_t channel = (item - place * args.pieces) * W, left = (place - line * args.across) * kAcross,
                top = line - image * args.down;
  const int32_t from_y = top * Config::kStride[0] - args.low[0], from_x = left * Config::kStride[1] - args.low[1];
  const int64_t pitch = int64_t(args.in[1]) * args.pixel;
  const X* origin =
      static_cast<const X*>(args.x) + image * (pitch * args.in[0]) + int64_t(from_x) * args.pixel + channel;

  Ring ring;
#pragma unroll
  for (int a = 0; a < kAcross; ++a) {
#pragma unroll
    for (int i = 0; i < W; ++i) ring.acc[a][i] = empty_window<Config>();
  }
#pragma unroll 1
  for (int y = 0; y < kHeight; ++y) {
    if (static_cast<uint32_t>(from_y + y) >= static_cast<uint32_t>(args.in[0])) continue;
    const Filter* filter = static_cast<const Filter*>(args.filters) + y * Config::kWindow[1] * args.filter_tap +
                           channel * args.filter_channel;
    ring.row({origin + (from_y + y) * pitch, from_x, args.in[1], args.pixel},
             {filter, args.filter_tap, args.filter_channel});
  }
  const int32_t pixel = top * args.out[1] + left;
#pragma unroll
  for (int a = 0; a < kAcross; ++a) {
    if (Config::kWhole || left + a < args.out[1]) epilogue(ring.acc[a], image, pixel + a, channel, W);
  }
}

}  // namespace heddle::tile::cuda
