// Depthwise convolution and pooling in two dimensions over channels-last images, with a window size that is known at
// compile time. The kernel is bound by memory. A thread computes kDown x kAcross neighbouring outputs for kWidth
// channels and iterates over the rows of pixels that these outputs need. It loads and converts each pixel once for all
// windows that contain the pixel. Filters stay in registers, and the pixels of kAhead further rows are in flight.
// Neighbouring threads process neighbouring channels. For a pixel in the padding, a thread loads the nearest pixel of
// the image and ignores its value, so that no load depends on a branch.
//
//   struct Config {
//     using X = tile::half;                     // element type of the images, in memory
//     using Filter = tile::half;                // element type of the filters (kDot)
//     using Acc = float;                        // type of the accumulators
//     using Limits = float;                     // its limits are the maximum or minimum of an empty window
//     static constexpr int kWidth = 4;          // divides the number of channels
//     static constexpr int kWindow[2] = {3, 3}, kStride[2] = {1, 1};
//     static constexpr int kDown = 4, kAcross = 4;
//     // Of a thread's rows [0] and columns [1] of pixels, the first kBefore and the last kAfter may be outside the
//     // image. All others are inside.
//     static constexpr int kBefore[2] = {1, 1}, kAfter[2] = {1, 1};
//     static constexpr bool kWhole[2] = {true, true};  // kDown divides the output rows, kAcross the output columns
//     static constexpr bool kPacked = true;            // the layout of the filters is [tap][channel]
//     static constexpr auto kFold = tile::WindowFold::kDot;
//   };
//
// The epilogue is that of tile/kernel/cuda/window/generic.h.
#pragma once

#include "tile/kernel/cuda/window/generic.h"

namespace heddle::tile::cuda {

template <typename Config>
struct SlideTile {
  using X = typename Config::X;
  using Acc = typename Config::Acc;
  static constexpr int W = Config::kWidth;
  static constexpr int kRows = (Config::kDown - 1) * Config::kStride[0] + Config::kWindow[0];
  static constexpr int kColumns = (Config::kAcross - 1) * Config::kStride[1] + Config::kWindow[1];

  // The kWidth channels of a pixel in their memory format, as an array of words. A word is as wide as possible, but its
  // size must divide the size of the channels.
  static constexpr int kBytes = W * int(sizeof(X));
  using Word = uint_t<kBytes % 4 == 0 ? 4 : kBytes % 2 == 0 ? 2 : 1>;
  using Pixel = Neighbours<Word, kBytes / int(sizeof(Word))>;

  static __device__ constexpr bool checks_row(int r) {
    return r < Config::kBefore[0] || r >= kRows - Config::kAfter[0];
  }
  static __device__ constexpr bool checks_column(int c) {
    return c < Config::kBefore[1] || c >= kColumns - Config::kAfter[1];
  }

  const X* image;  // points to the thread's channels in pixel 0 of the image
  const X* next;   // points to the row of the next load, if that row is in the image
  int64_t pitch;   // distance of rows, in elements
  int32_t from_y, height;
  int32_t offset[kColumns];
  bool inside[kColumns];

  __device__ inline SlideTile(const SlideArgs& args, const X* origin, int32_t y, int32_t x)
      : image(origin), pitch(int64_t(args.in[1]) * args.pixel), from_y(y), height(args.in[0]) {
    next = image + y * pitch;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      int32_t at = x + c;
      if (checks_column(c)) {
        inside[c] = static_cast<uint32_t>(at) < static_cast<uint32_t>(args.in[1]);
        at = at < 0 ? 0 : at < args.in[1] ? at : args.in[1] - 1;
      }
      offset[c] = at * args.pixel;
    }
  }

  // Loads row r of the thread's pixels. Must be called for all rows in order.
  __device__ inline void load(Pixel (&row)[kColumns], int r) {
    const X* from = next;
    if (checks_row(r)) {
      const int32_t y = from_y + r;
      from = image + (y < 0 ? 0 : y < height ? y : height - 1) * pitch;
    }
    next += pitch;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) row[c] = *reinterpret_cast<const Pixel*>(from + offset[c]);
  }

  // Converts a loaded pixel to accumulator type. If the pixel is outside the image, the result is the neutral value.
  __device__ inline void values(Acc (&v)[W], Pixel pixel, int r, int c, bool row_inside) const {
    if (checks_row(r) || checks_column(c)) {
      const bool is_inside = (!checks_row(r) || row_inside) && (!checks_column(c) || inside[c]);
      Neighbours<X, W> empty;
#pragma unroll
      for (int i = 0; i < W; ++i) empty.x[i] = convert<X>(empty_window<Config>());
      const Pixel other = __builtin_bit_cast(Pixel, empty);
#pragma unroll
      for (int i = 0; i < kBytes / int(sizeof(Word)); ++i) pixel.x[i] = is_inside ? pixel.x[i] : other.x[i];
    }
    const auto raw = __builtin_bit_cast(Neighbours<X, W>, pixel);
#pragma unroll
    for (int i = 0; i < W; ++i) v[i] = convert<Acc>(raw.x[i]);
  }
};

// One row of the filters, in registers.
template <typename Config>
struct SlideFilters {
  static constexpr int W = Config::kWidth;
  typename Config::Acc taps[Config::kWindow[1]][W];

  __device__ inline void load(const SlideArgs& args, int32_t channel, int row) {
    if constexpr (Config::kFold == WindowFold::kDot) {
      using Filter = typename Config::Filter;
      const Filter* filter = static_cast<const Filter*>(args.filters) + row * Config::kWindow[1] * args.filter_tap;
#pragma unroll
      for (int x = 0; x < Config::kWindow[1]; ++x, filter += args.filter_tap) {
        if constexpr (Config::kPacked) {
          load_channels(taps[x], filter + channel);
        } else {
#pragma unroll
          for (int i = 0; i < W; ++i) {
            taps[x][i] = convert<typename Config::Acc>(filter[(channel + i) * args.filter_channel]);
          }
        }
      }
    }
  }
};

// The kernel. Each thread computes one item; any number of threads may be launched.
template <typename Config, typename Epilogue>
__device__ inline void slide(const SlideArgs& args, const Epilogue& epilogue) {
  using Tile = SlideTile<Config>;
  using Acc = typename Config::Acc;
  using X = typename Config::X;
  constexpr int W = Config::kWidth, kDown = Config::kDown, kAcross = Config::kAcross;
  constexpr int kHeight = Config::kWindow[0], kLength = Config::kWindow[1];
  constexpr int kRows = Tile::kRows, kColumns = Tile::kColumns, kAhead = kRows < 2 ? kRows : 2;
  // All rows of the filters are kept in registers if several rows of outputs need them.
  constexpr int kKept = kDown > 1 ? kHeight : 1;
  const auto item = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  if (item >= args.items) return;

  // Splits the item number into channels, column, row and image.
  const int32_t place = args.by_pieces.divide(item), line = args.by_across.divide(place),
                image = args.by_down.divide(line);
  const int32_t channel = (item - place * args.pieces) * W, left = (place - line * args.across) * kAcross,
                top = (line - image * args.down) * kDown;
  const int32_t from_y = top * Config::kStride[0] - args.low[0], from_x = left * Config::kStride[1] - args.low[1];
  Tile tile(args, static_cast<const X*>(args.x) + image * (int64_t(args.in[0]) * args.in[1] * args.pixel) + channel,
            from_y, from_x);

  typename Tile::Pixel rows[kAhead + 1][kColumns];
#pragma unroll
  for (int r = 0; r < kAhead; ++r) tile.load(rows[r], r);
  SlideFilters<Config> filters[kKept];
  if constexpr (kKept > 1) {
#pragma unroll
    for (int y = 0; y < kHeight; ++y) filters[y].load(args, channel, y);
  }
  Acc acc[kDown][kAcross][W];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (r + kAhead < kRows) tile.load(rows[(r + kAhead) % (kAhead + 1)], r + kAhead);
    if constexpr (kKept == 1) filters[0].load(args, channel, r);
    const bool row_inside = static_cast<uint32_t>(from_y + r) < static_cast<uint32_t>(args.in[0]);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      Acc v[W];
      tile.values(v, rows[r % (kAhead + 1)][c], r, c, row_inside);
#pragma unroll
      for (int d = 0; d < kDown; ++d) {
        const int y = r - d * Config::kStride[0];
        if (y < 0 || y >= kHeight) continue;
#pragma unroll
        for (int a = 0; a < kAcross; ++a) {
          const int x = c - a * Config::kStride[1];
          if (x < 0 || x >= kLength) continue;
#pragma unroll
          for (int i = 0; i < W; ++i) {
            const Acc before = y == 0 && x == 0 ? empty_window<Config>() : acc[d][a][i];
            if constexpr (Config::kFold == WindowFold::kDot) {
              acc[d][a][i] = before + v[i] * filters[kKept > 1 ? y : 0].taps[x][i];
            } else {
              acc[d][a][i] = fold_window<Config::kFold>(before, v[i]);
            }
          }
        }
      }
    }
    // Finishes the row of outputs for which this was the last row of pixels.
#pragma unroll
    for (int d = 0; d < kDown; ++d) {
      if (r != d * Config::kStride[0] + kHeight - 1) continue;
      if (!Config::kWhole[0] && top + d >= args.out[0]) continue;
      const int32_t pixel = (top + d) * args.out[1] + left;
#pragma unroll
      for (int a = 0; a < kAcross; ++a) {
        if (Config::kWhole[1] || left + a < args.out[1]) epilogue(acc[d][a], image, pixel + a, channel, W);
      }
    }
  }
}

}  // namespace heddle::tile::cuda
