// 3x3 convolution with stride 1 and any dilation by Winograd's F(4x4, 3x3), which needs a quarter of the
// multiplications. For each block of tiles, the transformed input V[36][tiles][c] and one panel's products
// M[36][tiles][NR] stay in the second-level cache. V and the filters are f32 numbers, or words of two 16-bit numbers
// (short_pair) with exact sums. Sums of other magnitudes than those of tile/core/winograd.h wrap.
#pragma once

#include "tile/core/winograd.h"
#include "tile/kernel/cpu/gemm.h"

namespace heddle::tile {

namespace detail {

// The elements of words TB with sums of type T.
template <typename T, typename TB>
struct winograd_element {
  using type = T;
};
template <typename T>
struct winograd_element<T, short_pair> {
  using type = int16_t;
};

// Computes B^T x, the input transform along one dimension.
template <int W>
TILE_INLINE void winograd_in(const vec<float, W> (&x)[kWinogradIn], vec<float, W> (&y)[kWinogradIn]) {
  using V = vec<float, W>;
  constexpr float a = WinogradPoints::a, b = WinogradPoints::b, a2 = WinogradPoints::a2, b2 = WinogradPoints::b2;
  const V even_a = fma(x[2], -b2, x[4]), odd_a = fma(x[1], -b2, x[3]) * a;
  const V even_b = fma(x[2], -a2, x[4]), odd_b = fma(x[1], -a2, x[3]) * b;
  y[0] = fma(x[0], a2 * b2, fma(x[2], -(a2 + b2), x[4]));
  y[1] = even_a + odd_a;
  y[2] = even_a - odd_a;
  y[3] = even_b + odd_b;
  y[4] = even_b - odd_b;
  y[5] = fma(x[1], a2 * b2, fma(x[3], -(a2 + b2), x[5]));
}

template <int W>
TILE_INLINE void winograd_in(const vec<int16_t, W> (&x)[kWinogradIn], vec<int16_t, W> (&y)[kWinogradIn]) {
  using V = vec<int16_t, W>;
  const V even_a = x[4] - (x[2] << int16_t(2)), odd_a = x[3] - (x[1] << int16_t(2));
  const V even_b = x[4] - x[2], odd_b = (x[3] - x[1]) << int16_t(1);
  y[0] = ((x[0] - x[2]) << int16_t(2)) + even_b;
  y[1] = even_a + odd_a;
  y[2] = even_a - odd_a;
  y[3] = even_b + odd_b;
  y[4] = even_b - odd_b;
  y[5] = ((x[1] - x[3]) << int16_t(2)) + x[5] - x[3];
}

// Computes A^T x, the output transform along one dimension.
template <int W>
TILE_INLINE void winograd_out(const vec<float, W> (&x)[kWinogradIn], vec<float, W> (&y)[kWinogradOut]) {
  using V = vec<float, W>;
  constexpr float a = WinogradPoints::a, b = WinogradPoints::b, a2 = WinogradPoints::a2, b2 = WinogradPoints::b2;
  const V sum_a = x[1] + x[2], sum_b = x[3] + x[4], odd_a = (x[1] - x[2]) * a, odd_b = (x[3] - x[4]) * b;
  y[0] = x[0] + sum_a + sum_b;
  y[1] = odd_a + odd_b;
  y[2] = fma(sum_a, a2, sum_b * b2);
  y[3] = fma(odd_a, a2, fma(odd_b, b2, x[5]));
}

// The results are 24, 12, 6 and 6 times those of A^T x.
template <int W>
TILE_INLINE void winograd_out(const vec<int32_t, W> (&x)[kWinogradIn], vec<int32_t, W> (&y)[kWinogradOut]) {
  using V = vec<int32_t, W>;
  const V sum_a = x[1] + x[2], sum_b = x[3] + x[4], odd_a = x[1] - x[2], odd_b = x[3] - x[4];
  y[0] = x[0] + sum_b - (sum_a << 2);
  y[1] = odd_b - (odd_a << 1);
  y[2] = sum_b - sum_a;
  y[3] = (odd_b << 1) - odd_a + x[5];
}

// The sum at pixel (i, j) of a tile, from what two calls of winograd_out() make of it.
template <int W>
TILE_INLINE vec<float, W> winograd_sum(vec<float, W> y, int, int) {
  return y;
}
template <int W>
TILE_INLINE vec<int32_t, W> winograd_sum(vec<int32_t, W> y, int i, int j) {
  constexpr int kShifts[kWinogradOut] = {3, 2, 1, 1};
  constexpr int32_t kNinth = 0x38e38e39;  // modulo 2^32
  return (y * splat<W>(kNinth)) >> (kShifts[i] + kShifts[j]);
}

// Transforms W channels of 6x6 input pixels. The 36 results are stored to `v` at distances of `point` elements. `x`
// points to pixel (0, 0), which may be outside the image. `inside` is {y0, y1, x0, x1}: the pixels in [y0, y1) x [x0,
// x1) are inside the image, and the others count as zero. `n` is the number of channels to load.
template <int W, typename E, typename TX, typename N>
TILE_INLINE void winograd_input(const TX* x, int64_t row, int64_t pixel, const int64_t (&inside)[4], E* v,
                                int64_t point, N n) {
  using V = vec<E, W>;
  V t[kWinogradIn][kWinogradIn];
  const bool whole = inside[0] == 0 && inside[1] == kWinogradIn && inside[2] == 0 && inside[3] == kWinogradIn;
  for (int j = 0; j < kWinogradIn; ++j) {
    V d[kWinogradIn], y[kWinogradIn];
    if (whole) {
      static_for<kWinogradIn>([&](auto i) { d[i] = convert<E>(load_n<W>(x + i * row + j * pixel, n)); });
    } else {
      const bool column = j >= inside[2] && j < inside[3];
      for (int i = 0; i < kWinogradIn; ++i) {
        d[i] = zero<E, W>();
        if (column && i >= inside[0] && i < inside[1]) d[i] = convert<E>(load_n<W>(x + i * row + j * pixel, n));
      }
    }
    winograd_in(d, y);
    static_for<kWinogradIn>([&](auto i) { t[i][j] = y[i]; });
  }
  for (int i = 0; i < kWinogradIn; ++i) {
    V y[kWinogradIn];
    winograd_in(t[i], y);
    static_for<kWinogradIn>([&](auto j) { store(v + (i * kWinogradIn + j) * point, y[j]); });
  }
}

// Transforms W columns (output channels) of one finished tile: from the 36 products in `m`, at distances of `point`
// elements, to the 16 pixels in `out`.
template <int W, typename T>
TILE_INLINE void winograd_output(const T* m, int64_t point, vec<T, W> (&out)[kWinogradOut * kWinogradOut]) {
  using V = vec<T, W>;
  V t[kWinogradOut][kWinogradIn];
  for (int j = 0; j < kWinogradIn; ++j) {
    V x[kWinogradIn], y[kWinogradOut];
    static_for<kWinogradIn>([&](auto i) { x[i] = load<W>(m + (i * kWinogradIn + j) * point); });
    winograd_out(x, y);
    static_for<kWinogradOut>([&](auto i) { t[i][j] = y[i]; });
  }
  for (int i = 0; i < kWinogradOut; ++i) {
    V y[kWinogradOut];
    winograd_out(t[i], y);
    static_for<kWinogradOut>([&](auto j) { out[i * kWinogradOut + j] = winograd_sum(y[j], i, j); });
  }
}

// The location of a tile in the images.
struct WinogradTile {
  int64_t n, y, x;  // image number; first output pixel
};
TILE_INLINE WinogradTile winograd_tile(const WinogradShape& s, int64_t tile) {
  const int64_t across = s.tiles_x(), down = s.tiles_y();
  return {tile / across / down, s.first_output(0, tile / across % down), s.first_output(1, tile % across)};
}

// The number of positions at, at + step, ... that are less than `end`, limited to [0, most].
TILE_INLINE int64_t winograd_count(int64_t at, int64_t step, int64_t end, int64_t most) {
  const int64_t count = at >= end ? 0 : (end - at + step - 1) / step;
  return count < most ? count : most;
}

template <typename E, typename TX>
inline void winograd_block(const WinogradShape& s, const TX* x, int64_t first, int64_t last, E* v) {
  constexpr int W = kVectorBytes / int(sizeof(E));
  const int64_t stride = s.channel_stride() * s.elements, point = s.block_tiles * stride;
  const int64_t row = s.in[1] * s.pitch(), down = s.dilation[0], across = s.dilation[1];
  for (int64_t i = 0; i < s.block_tiles; ++i) {
    E* out = v + i * stride;
    if (first + i >= last) {  // rows after the last tile are computed, but not used
      for (int p = 0; p < kWinogradPoints; ++p) {
        for (int64_t c = 0; c < s.words() * s.elements; ++c) out[p * point + c] = 0;
      }
      continue;
    }
    const WinogradTile at = winograd_tile(s, first + i);
    const int64_t y = at.y - s.low[0], left = at.x - s.low[1];
    const int64_t inside[4] = {winograd_count(y, down, 0, kWinogradIn), winograd_count(y, down, s.in[0], kWinogradIn),
                               winograd_count(left, across, 0, kWinogradIn),
                               winograd_count(left, across, s.in[1], kWinogradIn)};
    const TX* from = x + at.n * s.in[0] * row + y * row + left * s.pitch();
    int64_t c = 0;
    for (; c + W <= s.c; c += W) {
      winograd_input<W>(from + c, down * row, across * s.pitch(), inside, out + c, point, index_constant<W>{});
    }
    if (c < s.c) winograd_input<W>(from + c, down * row, across * s.pitch(), inside, out + c, point, s.c - c);
  }
}

// Applies the output transform to one panel of products, and passes the pixels inside the image to the epilogue.
template <int NV, typename T, typename Epilogue>
inline void winograd_finish(const WinogradShape& s, int64_t first, int64_t last, int64_t panel, const T* m,
                            const Epilogue& epilogue) {
  constexpr int W = kLanes;
  constexpr int64_t nr = NV * W;
  const int64_t point = s.block_tiles * nr;
  for (int64_t i = 0; i < s.block_tiles && first + i < last; ++i) {
    const WinogradTile at = winograd_tile(s, first + i);
    const int64_t rows = winograd_count(at.y, s.dilation[0], s.out[0], kWinogradOut);
    const int64_t columns = winograd_count(at.x, s.dilation[1], s.out[1], kWinogradOut);
    for (int64_t j = 0; j < NV; ++j) {
      const int64_t col = panel * nr + j * W, n = s.o - col;
      if (n <= 0) break;
      vec<T, W> out[kWinogradOut * kWinogradOut];
      winograd_output<W>(m + i * nr + j * W, point, out);
      for (int64_t y = 0; y < rows; ++y) {
        for (int64_t x = 0; x < columns; ++x) {
          const int64_t pixel = (at.y + y * s.dilation[0]) * s.out[1] + at.x + x * s.dilation[1];
          const vec<T, W> acc = out[y * kWinogradOut + x];
          if (n >= W) {
            epilogue.template operator()<W>(acc, at.n, pixel, col, index_constant<W>{});
          } else {
            epilogue.template operator()<W>(acc, at.n, pixel, col, n);
          }
        }
      }
    }
  }
}

// Computes panel `panel` of the tiles [first, last), at most s.block_tiles tiles. `v` is the transformed input of the
// tiles. `m` is scratch for the products.
template <int NV, typename T, typename TB, typename Epilogue>
TILE_INLINE void winograd_panel(const MicroKernels<T, TB>& micro, const WinogradShape& s, const TB* filters,
                                const Epilogue& epilogue, int64_t first, int64_t last, int64_t panel, T* m,
                                const T* v) {
  constexpr int64_t nr = kPanel<T, NV>;
  const int64_t stride = s.channel_stride(), one_segment = 0;
  for (int64_t p = 0; p < kWinogradPoints; ++p) {
    const TB* u = filters + (panel * kWinogradPoints + p) * s.words() * nr;
    int64_t row = 0;
    for (int64_t tile = 0; tile < s.row_tiles; ++tile) {
      const MicroA<T> op{v + (p * s.block_tiles + row) * stride, stride, &one_segment, 1, s.words()};
      T* const c = m + (p * s.block_tiles + row) * nr;
      micro.template run<false>(tile < s.tall, op, u, nr, c);
      row += micro.rows - (tile < s.tall ? 0 : 1);
    }
  }
  winograd_finish<NV>(s, first, last, panel, m, epilogue);
}

// The parts of the scratch memory of a block of tiles.
template <int NV, typename T, typename TB>
struct WinogradScratch {
  using Element = typename winograd_element<T, TB>::type;

  WinogradScratch(const WinogradShape& s, void* scratch)
      : m(static_cast<T*>(scratch)), v(m + kWinogradPoints * s.block_tiles * kPanel<T, NV>) {}
  Element* elements() const { return reinterpret_cast<Element*>(v); }

  T* const m;  // products
  T* const v;  // words of the transformed input
};

}  // namespace detail

// Runs tasks [begin, end) of s.tasks(kPanel<T, NV>). The scratch has s.scratch_bytes(kPanel<T, NV>) bytes. `filters`
// were packed by pack_winograd(). The epilogue is that of conv(). micro.rows must be
// split_rows(s.block_tiles, kMicroRows).mr.
template <int NV, typename T, typename TB, typename TX, typename Epilogue>
void winograd(const MicroKernels<T, TB>& micro, const WinogradShape& s, const TX* x, const TB* filters,
              const Epilogue& epilogue, void* scratch, int64_t begin, int64_t end) {
  constexpr int64_t nr = kPanel<T, NV>;
  const int64_t n_blocks = s.n_blocks(nr), panels = panel_count(s.o, nr);
  const detail::WinogradScratch<NV, T, TB> space(s, scratch);
  int64_t ready = -1;
  for (int64_t task = begin; task < end; ++task) {
    const int64_t block = task / n_blocks, first = block * s.block_tiles;
    if (ready != block) {  // tasks of a block are consecutive and share its transformed input
      detail::winograd_block(s, x, first, s.tiles(), space.elements());
      ready = block;
    }
    const int64_t panel0 = task % n_blocks * s.block_panels;
    const int64_t panel1 = panel0 + s.block_panels < panels ? panel0 + s.block_panels : panels;
    for (int64_t panel = panel0; panel < panel1; ++panel) {
      detail::winograd_panel<NV>(micro, s, filters, epilogue, first, s.tiles(), panel, space.m, space.v);
    }
  }
}

// Computes all channels of output rows [oh, oh + rows) of image n, without dilation. `oh` must be a multiple of 4, and
// s.block_tiles must be at least the number of tiles in `rows` rows. The scratch is as for winograd().
template <int NV, typename T, typename TB, typename TX, typename Epilogue>
void winograd_rows(const MicroKernels<T, TB>& micro, const WinogradShape& s, const TX* x, const TB* filters,
                   const Epilogue& epilogue, void* scratch, int64_t n, int64_t oh, int64_t rows) {
  const detail::WinogradScratch<NV, T, TB> space(s, scratch);
  const int64_t first = (n * s.tiles_y() + oh / kWinogradOut) * s.tiles_x();
  const int64_t last = first + (rows + kWinogradOut - 1) / kWinogradOut * s.tiles_x();
  detail::winograd_block(s, x, first, last, space.elements());
  for (int64_t panel = 0; panel < panel_count(s.o, kPanel<T, NV>); ++panel) {
    detail::winograd_panel<NV>(micro, s, filters, epilogue, first, last, panel, space.m, space.v);
  }
}

}  // namespace heddle::tile
