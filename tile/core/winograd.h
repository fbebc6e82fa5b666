// Winograd's minimal filtering F(4x4, 3x3): the points of its transforms, the transform of filters, and the shape of a
// problem. The points are 0, +-3/4, +-3/2 and infinity. With these points, the error is 1.3 times that of a direct
// convolution (256 channels, random data). With the usual points 0, +-1, +-2 and infinity, it would be 5 times that of
// a direct convolution. Every coefficient of the input transform is exact in binary.
// Integers use the usual points, whose transforms are exact: of images of bytes, and of filters times 24 or 6, 16 bits
// hold the results. The output transform gives 576 times the sums, or fractions of that by powers of two, modulo 2^32.
#pragma once

#include <stdint.h>

#include "tile/core/pack.h"
#include "tile/core/shape.h"

namespace heddle::tile {

inline constexpr int kWinogradIn = 6, kWinogradOut = 4;
inline constexpr int kWinogradPoints = kWinogradIn * kWinogradIn;

struct WinogradPoints {
  static constexpr double a = 0.75, b = 1.5;
  static constexpr double a2 = a * a, b2 = b * b;
};

// Problem and blocking of winograd(): 3x3 windows, stride 1, two spatial dimensions. Tiles are numbered across all
// images. The pixels of a tile are `dilation` pixels apart, like the pixels of a window. The pixels in between belong
// to interleaved tiles that begin at neighbouring pixels.
struct WinogradShape {
  int64_t batch = 1, c = 0, o = 0;
  int64_t pixel = 0;  // stride between input pixels, in elements; 0: c
  int64_t in[2] = {1, 1}, out[2] = {1, 1}, low[2] = {0, 0}, dilation[2] = {1, 1};
  int64_t elements = 1;             // channels of a 32-bit word of transformed images and filters
  int64_t block_tiles = 1;          // output tiles per task, the rows of the task's products; split by split_rows()
  int64_t row_tiles = 0, tall = 0;  // result of split_rows(block_tiles)
  int64_t block_panels = 1;         // panels of filters per task

  constexpr int64_t pitch() const { return pixel > 0 ? pixel : c; }
  // The number of interleaved tiles along dimension d that together cover contiguous pixels.
  constexpr int64_t phases(int d) const { return dilation[d] < out[d] ? dilation[d] : out[d] < 1 ? 1 : out[d]; }
  constexpr int64_t tiles_along(int d) const {
    const int64_t reach = kWinogradOut * dilation[d];
    return (out[d] + reach - 1) / reach * phases(d);
  }
  constexpr int64_t tiles_y() const { return tiles_along(0); }
  constexpr int64_t tiles_x() const { return tiles_along(1); }
  // The first output pixel of a tile along dimension d.
  constexpr int64_t first_output(int d, int64_t tile) const {
    const int64_t gaps = phases(d);
    return tile / gaps * kWinogradOut * dilation[d] + tile % gaps;
  }
  constexpr int64_t tiles() const { return batch * tiles_y() * tiles_x(); }
  constexpr int64_t blocks() const { return (tiles() + block_tiles - 1) / block_tiles; }
  constexpr int64_t n_blocks(int64_t width) const { return (panel_count(o, width) + block_panels - 1) / block_panels; }
  constexpr int64_t tasks(int64_t width) const { return blocks() * n_blocks(width); }
  constexpr int64_t words() const { return (c + elements - 1) / elements; }
  constexpr int64_t channel_stride() const { return copied_stride(words(), 4); }  // in words
  constexpr int64_t scratch_bytes(int64_t width) const {
    return 4 * kWinogradPoints * block_tiles * (width + channel_stride());
  }
};

// Computes U = G g G^T for one 3x3 filter g.
inline void winograd_filter(const double (&g)[3][3], double (&u)[kWinogradIn][kWinogradIn]) {
  constexpr double a = WinogradPoints::a, b = WinogradPoints::b, a2 = WinogradPoints::a2, b2 = WinogradPoints::b2;
  constexpr double fa = 1 / (2 * a2 * (a2 - b2)), fb = 1 / (2 * b2 * (b2 - a2));
  constexpr double G[kWinogradIn][3] = {{1 / (a2 * b2), 0, 0}, {fa, fa * a, fa * a2},  {fa, -fa * a, fa * a2},
                                        {fb, fb * b, fb * b2}, {fb, -fb * b, fb * b2}, {0, 0, 1}};
  double t[kWinogradIn][3];
  for (int i = 0; i < kWinogradIn; ++i) {
    for (int j = 0; j < 3; ++j) t[i][j] = G[i][0] * g[0][j] + G[i][1] * g[1][j] + G[i][2] * g[2][j];
  }
  for (int i = 0; i < kWinogradIn; ++i) {
    for (int j = 0; j < kWinogradIn; ++j) u[i][j] = G[j][0] * t[i][0] + G[j][1] * t[i][1] + G[j][2] * t[i][2];
  }
}

// Transforms filters [o][c][3][3] and packs them as [panel][point][c][width]. `convert` returns an element as double.
// Columns past the last filter are zero.
template <typename Src, typename Convert>
inline void pack_winograd(float* dst, const Src* src, int64_t o, int64_t c, int64_t width, Convert convert) {
  const int64_t panels = panel_count(o, width);
  for (int64_t panel = 0; panel < panels; ++panel) {
    for (int64_t i = 0; i < c; ++i) {
      for (int64_t j = 0; j < width; ++j) {
        const int64_t column = panel * width + j;
        double g[3][3] = {}, u[kWinogradIn][kWinogradIn];
        if (column < o) {
          for (int t = 0; t < 9; ++t) g[t / 3][t % 3] = convert(src[(column * c + i) * 9 + t]);
        }
        winograd_filter(g, u);
        for (int p = 0; p < kWinogradPoints; ++p) {
          dst[((panel * kWinogradPoints + p) * c + i) * width + j] =
              static_cast<float>(u[p / kWinogradIn][p % kWinogradIn]);
        }
      }
    }
  }
}

// ---- Integers.

// The largest absolute values of filters, and of the products of a filter and an image, for which the transforms are
// exact. Images have elements from an interval of length 255 that contains 0; their transform multiplies it by at
// most 100. That of the filters multiplies by at most 49.
inline constexpr int64_t kWinogradImage = 255, kWinogradFilter = 32767 / 49, kWinogradSum = (int64_t{1} << 25) - 1;

// Computes U = G g G^T for one 3x3 filter g. The rows of G for the points 0, +-1, +-2 and infinity are multiplied by
// 24, -6, -6, 24, 24 and 6.
inline void winograd_filter(const int64_t (&g)[3][3], int64_t (&u)[kWinogradIn][kWinogradIn]) {
  constexpr int64_t G[kWinogradIn][3] = {{6, 0, 0}, {1, 1, 1}, {1, -1, 1}, {1, 2, 4}, {1, -2, 4}, {0, 0, 6}};
  int64_t t[kWinogradIn][3];
  for (int i = 0; i < kWinogradIn; ++i) {
    for (int j = 0; j < 3; ++j) t[i][j] = G[i][0] * g[0][j] + G[i][1] * g[1][j] + G[i][2] * g[2][j];
  }
  for (int i = 0; i < kWinogradIn; ++i) {
    for (int j = 0; j < kWinogradIn; ++j) u[i][j] = G[j][0] * t[i][0] + G[j][1] * t[i][1] + G[j][2] * t[i][2];
  }
}

// Transforms integer filters [o][c][3][3] and packs them as [panel][point][c / 2][width][2], with a zero channel at the
// end if c is odd, and zero columns past the last filter.
template <typename Src>
inline void pack_winograd(int16_t* dst, const Src* src, int64_t o, int64_t c, int64_t width) {
  const int64_t words = (c + 1) / 2;
  for (int64_t column = 0; column < panel_count(o, width) * width; ++column) {
    for (int64_t i = 0; i < 2 * words; ++i) {
      int64_t g[3][3] = {}, u[kWinogradIn][kWinogradIn];
      if (column < o && i < c) {
        for (int t = 0; t < 9; ++t) g[t / 3][t % 3] = src[(column * c + i) * 9 + t];
      }
      winograd_filter(g, u);
      for (int p = 0; p < kWinogradPoints; ++p) {
        const int64_t word = ((column / width * kWinogradPoints + p) * words + i / 2) * width + column % width;
        dst[2 * word + i % 2] = static_cast<int16_t>(u[p / kWinogradIn][p % kWinogradIn]);
      }
    }
  }
}

}  // namespace heddle::tile
