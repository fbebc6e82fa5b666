// The gradients of the filters of a depthwise convolution over channels-last images in one or two dimensions: for each
// tap and channel, the sum over all outputs of the output's gradient times the pixel under the tap. A thread has the
// sums of all taps of kWidth neighbouring channels and walks along rows of pixels. The pixels of one column, a tap's
// row each, are loaded once; a ring of registers holds the gradients of all outputs whose windows contain the column.
// Threads of a block that process the same channels of neighbouring rows share pixels in the L1. At the end, the block
// adds its threads' sums in order and stores them as one part of k for gemm_reduce() (gemm/splitk_reduce.h), whose
// matrix has a row for each tap and a column for each channel.
//
//   struct Config {
//     using In = tile::bfloat;                     // float, half or bfloat
//     static constexpr int kWidth = 2;             // neighbouring channels of a thread
//     static constexpr int kTapsY = 7, kTapsX = 7, kStrideX = 1;
//     static constexpr int kLowX = 3;              // padding before a row
//   };
#pragma once

#include "tile/arch/sm80/convert.h"
#include "tile/core/cuda_window.h"
#include "tile/kernel/cuda/gemm/fragments_to_rows.h"
#include "tile/kernel/cuda/row.h"

namespace heddle::tile::cuda {

TILE_HD constexpr int wgrad_floor_div(int a, int b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

template <typename Config>
struct DepthwiseWgrad {
  using In = typename Config::In;
  using Piece = PieceWords<In, Config::kWidth>;
  static constexpr int W = Config::kWidth, kTapsY = Config::kTapsY, kTapsX = Config::kTapsX;
  static constexpr int kStride = Config::kStrideX, kLow = Config::kLowX;
  // A step takes kStride columns of pixels, from column kStride * q on. Tap x of output q + d reads column j of the
  // step if kStride * d = j + kLow - x. The ring has the outputs q + kFirst to q + kLast.
  static constexpr int kLast = (kStride - 1 + kLow) / kStride;
  static constexpr int kFirst = -wgrad_floor_div(kTapsX - 1 - kLow, kStride);
  static constexpr int kRing = kLast - kFirst + 1;
  static_assert(kRing > 0 && kLow >= 0);

  const DepthwiseWgradArgs& args;
  float sums[kTapsY * kTapsX][W];
  float ring[kRing][W];
  Piece pixels[kStride][kTapsY], next;  // of the coming step: pixels, and the gradient that enters the ring
  int32_t row, gradients;               // the window's first pixel, and the first gradient, of a row of outputs
  uint32_t rows;                        // a bit for each row of the window inside the image

  __device__ explicit DepthwiseWgrad(const DepthwiseWgradArgs& of) : args(of) {
#pragma unroll
    for (int tap = 0; tap < kTapsY * kTapsX; ++tap) {
#pragma unroll
      for (int i = 0; i < W; ++i) sums[tap][i] = 0;
    }
  }

  __device__ Piece gradient(int32_t output) const {
    const bool inside = static_cast<uint32_t>(output) < static_cast<uint32_t>(args.out[1]);
    const In* from = static_cast<const In*>(args.gradient) + (gradients + output * args.gradient_pixel);
    return inside ? *reinterpret_cast<const Piece*>(from) : Piece{};
  }
  __device__ void load_column(int32_t q, int j) {
    const int32_t x = q * kStride + j, at = row + x * args.image_pixel, pitch = args.in[1] * args.image_pixel;
    const uint32_t inside = x < args.in[1] ? rows : 0;
#pragma unroll
    for (int y = 0; y < kTapsY; ++y) {
      const In* from = static_cast<const In*>(args.image) + (at + y * pitch);
      pixels[j][y] = (inside >> y & 1) != 0 ? *reinterpret_cast<const Piece*>(from) : Piece{};
    }
  }

  // Multiplies one column of pixels. The gradient of output q + kFirst is in slot kTurn of the ring.
  template <int kTurn>
  __device__ void multiply(const float (&column)[kTapsY][W], int j) {
#pragma unroll
    for (int x = 0; x < kTapsX; ++x) {
      const int distance = j + kLow - x;  // of the output, in columns
      if (distance - wgrad_floor_div(distance, kStride) * kStride != 0) continue;
      const int slot = (wgrad_floor_div(distance, kStride) - kFirst + kTurn) % kRing;
#pragma unroll
      for (int y = 0; y < kTapsY; ++y) {
#pragma unroll
        for (int i = 0; i < W; ++i) sums[y * kTapsX + x][i] += column[y][i] * ring[slot][i];
      }
    }
  }

  // Steps until the ring has turned once or the row ends. The ring is at turn kTurn.
  template <int kTurn = 0>
  __device__ void turn(int32_t& q) {
    constexpr int kEnters = (kLast - kFirst + kTurn) % kRing;
#pragma unroll
    for (int i = 0; i < W; ++i) ring[kEnters][i] = to_float(next.element(i));
    ++q;
    next = gradient(q + kLast);
#pragma unroll
    for (int j = 0; j < kStride; ++j) {
      float column[kTapsY][W];
#pragma unroll
      for (int y = 0; y < kTapsY; ++y) {
#pragma unroll
        for (int i = 0; i < W; ++i) column[y][i] = to_float(pixels[j][y].element(i));
      }
      load_column(q, j);  // under way while this one is multiplied
      multiply<kTurn>(column, j);
    }
    if constexpr (kTurn + 1 < kRing) {
      if (q < args.steps) turn<kTurn + 1>(q);
    }
  }

  // Adds the products of one row of outputs.
  __device__ void add_row(int32_t line, int32_t channel) {
    const int32_t image = args.by_rows.divide(line), top = (line - image * args.out[0]) * args.stride_y - args.low_y;
    gradients = line * args.out[1] * args.gradient_pixel + channel;
    row = (image * args.in[0] + top) * args.in[1] * args.image_pixel + channel;
    rows = 0;
#pragma unroll
    for (int y = 0; y < kTapsY; ++y) {
      rows |= static_cast<uint32_t>(static_cast<uint32_t>(top + y) < static_cast<uint32_t>(args.in[0])) << y;
    }
#pragma unroll
    for (int d = kFirst; d < kLast; ++d) {
      const Piece piece = gradient(d);
#pragma unroll
      for (int i = 0; i < W; ++i) ring[d - kFirst][i] = to_float(piece.element(i));
    }
    next = gradient(kLast);
#pragma unroll
    for (int j = 0; j < kStride; ++j) load_column(0, j);
    int32_t q = 0;
#pragma unroll 1
    do {
      turn(q);
    } while (q < args.steps);
  }
};

// The kernel. A block has args.pieces * args.rows threads, and shared memory for the sums of all of them. The grid has
// a block for each piece of the channels along x, and for each part of k along y.
template <typename Config>
__device__ inline void depthwise_wgrad(const DepthwiseWgradArgs& args, const NoEpilogue&) {
  using Thread = DepthwiseWgrad<Config>;
  constexpr int W = Config::kWidth, kTaps = Config::kTapsY * Config::kTapsX;
  extern __shared__ uint8_t raw_shared[];
  auto* shared = reinterpret_cast<float*>(raw_shared);  // [row of the block][tap][channel of the block]
  const auto thread = static_cast<int32_t>(threadIdx.x);
  const int32_t row = thread / args.pieces, piece = thread - row * args.pieces;
  const int32_t first = static_cast<int32_t>(blockIdx.x) * args.pieces * W, columns = args.pieces * W;
  const int32_t channel = first + piece * W;
  const auto part = static_cast<int32_t>(blockIdx.y);
  const int32_t lines_end = (part + 1) * args.part < args.lines ? (part + 1) * args.part : args.lines;

  {
    Thread sums(args);
    if (channel < args.channels) {
#pragma unroll 1
      for (int32_t line = part * args.part + row; line < lines_end; line += args.rows) sums.add_row(line, channel);
    }
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
#pragma unroll
      for (int i = 0; i < W; ++i) shared[(row * kTaps + tap) * columns + piece * W + i] = sums.sums[tap][i];
    }
  }
  __syncthreads();
  auto* to = static_cast<float*>(args.partial) + part * args.p_split;
  for (int32_t at = thread; at < kTaps * columns; at += static_cast<int32_t>(blockDim.x)) {
    const int32_t tap = at / columns, column = first + at - tap * columns;
    if (column >= args.channels) continue;
    float sum = 0;
    for (int32_t r = 0; r < args.rows; ++r) sum += shared[r * kTaps * columns + at];
    to[tap * args.p_row + column] = sum;
  }
}

}  // namespace heddle::tile::cuda
