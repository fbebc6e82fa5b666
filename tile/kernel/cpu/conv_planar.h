// Convolution of channels-first images. Vector lanes are pixels of a row, so vectors are full even if there are few
// channels. A micro tile consists of several output channels and several vectors of pixels. Filter elements are
// broadcast to all lanes. The input is read in place, or from a padded copy of the lines that a task needs.
#pragma once

#include "tile/core/shape.h"
#include "tile/kernel/cpu/gemm.h"

namespace heddle::tile {

namespace detail {

// Copies the pixels [at, at + span) of a line of `width` pixels. Pixels outside of the line become zeros. Stores whole
// vectors and may overwrite data after out + span, so the caller must write that data after this call.
template <typename T, typename TX>
TILE_INLINE void copy_line(const TX* TILE_RESTRICT in, int64_t width, int64_t at, int64_t span, T* TILE_RESTRICT out) {
  constexpr int W = kVectorBytes / int(sizeof(T));
  int64_t i = at >= 0 ? 0 : -at < span ? -at : span;
  const int64_t last = width - at < span ? width - at : span;
  store_zero(out, i);
  for (; i + W <= last; i += W) store(out + i, convert<T>(load<W>(in + at + i)));
  if (i < last) {
    store(out + i, convert<T>(load_n<W>(in + at + i, last - i)));
    i += W;
  }
  for (; i < span; i += W) store(out + i, zero<T, W>());
}

// Copies pixels as copy_line() does, but groups them by phase. The phase of pixel `at + i` is i % stride. Each phase
// has `phase` elements of `out`, so the pixel is stored in out[i % stride * phase + i / stride]. `places`: the number
// of phases that are needed. It is 1 if windows are one pixel wide, since then only the first phase is read.
template <typename T, typename TX>
TILE_INLINE void copy_phases(const TX* TILE_RESTRICT in, int64_t width, int64_t at, int64_t span, int64_t stride,
                             int64_t places, int64_t phase, T* TILE_RESTRICT out) {
  constexpr int W = kVectorBytes / int(sizeof(T));
  const int64_t last = width - at < span ? width - at : span;
  if (stride != 2) {
    for (int64_t place = 0; place < places; ++place) {
      T* to = out + place * phase;
      int64_t i = place;
      for (; i < span && at + i < 0; i += stride) *to++ = T(0);
      for (; i < last; i += stride) *to++ = convert<T>(load<1>(in + at + i)).v;
      for (; i < span; i += stride) *to++ = T(0);
    }
    return;
  }
  int64_t i = at >= 0 ? 0 : -at < span ? -at : span;
  for (int64_t k = 0; k < i; ++k) out[k % 2 * phase + k / 2] = T(0);
  // From the line's first pixel on, the lanes of the vectors alternate between the two phases.
  T *const even = i % 2 == 0 ? out : out + phase, *const odd = i % 2 == 0 ? out + phase : out + 1;
  for (; i < span; i += 2 * W) {
    const int64_t left = last - i;
    vec<T, W> low, high;
    if (left >= 2 * W) {
      low = convert<T>(load<W>(in + at + i)), high = convert<T>(load<W>(in + at + i + W));
    } else {
      low = convert<T>(load_n<W>(in + at + i, left < 0 ? 0 : left < W ? left : W));
      high = convert<T>(load_n<W>(in + at + i + W, left < W ? 0 : left - W));
    }
    store(even + i / 2, even_lanes(low, high));
    store(odd + i / 2, odd_lanes(low, high));
  }
}

// Copies the input lines that a block of outputs needs. Layout of the copy: [channel][kd][line][phase][pixel].
template <typename T, typename TX>
void copy_planar_block(const ConvShape& s, const TX* x, int64_t n, int64_t g, int64_t od, int64_t oh, int64_t ow,
                       T* scratch) {
  const int64_t rows = s.block_rows < s.out[1] ? s.block_rows : s.out[1];
  const bool leaves = s.leaves_lines(rows);
  const int64_t height = s.copied_lines(rows), some = s.lines_of_tap(rows);
  const int64_t phase = s.phase_elements(sizeof(T)), line = s.planar_line(sizeof(T));
  const int64_t pixels = s.out[2] - ow < s.block_pixels ? s.out[2] - ow : s.block_pixels;
  const int64_t at = ow * s.stride[2] - s.low[2], span = s.reach(2, pixels);
  for (int64_t c = 0; c < s.c; ++c) {
    const TX* const image = x + ((n * s.groups + g) * s.c + c) * s.in[0] * s.in[1] * s.in[2];
    for (int64_t kd = 0; kd < s.kernel[0]; ++kd) {
      const int64_t d = od * s.stride[0] + kd * s.dilation[0] - s.low[0];
      for (int64_t i = 0; i < height; ++i) {
        const int64_t y = oh * s.stride[1] + (leaves ? i / some * s.dilation[1] + i % some : i) - s.low[1];
        T* const out = scratch + ((c * s.kernel[0] + kd) * height + i) * line;
        if (d < 0 || d >= s.in[0] || y < 0 || y >= s.in[1]) {
          for (int64_t j = 0; j < line; ++j) out[j] = T(0);
        } else if (s.stride[2] == 1) {
          copy_line(image + (d * s.in[1] + y) * s.in[2], s.in[2], at, span, out);
        } else {
          copy_phases(image + (d * s.in[1] + y) * s.in[2], s.in[2], at, span, s.stride[2],
                      s.kernel[2] == 1 ? 1 : s.stride[2], phase, out);
        }
      }
    }
  }
}

// Computes the offset of each tap from the first tap, in elements. The taps are in the order of the filters. With
// Direct, the offsets are in the image; otherwise, they are in a copied block.
template <bool Direct, typename T>
void planar_offsets(const ConvShape& s, int64_t* offsets) {
  const int64_t rows = s.block_rows < s.out[1] ? s.block_rows : s.out[1];
  const int64_t height = s.copied_lines(rows), line = Direct ? s.in[2] : s.planar_line(sizeof(T));
  const int64_t depth = line * (Direct ? s.in[1] : height), phase = s.phase_elements(sizeof(T));
  const int64_t channel = Direct ? depth * s.in[0] : depth * s.kernel[0];
  const int64_t down = !Direct && s.leaves_lines(rows) ? s.lines_of_tap(rows) : s.dilation[1];
  for (int64_t c = 0; c < s.c; ++c) {
    for (int64_t kd = 0; kd < s.kernel[0]; ++kd) {
      for (int64_t ky = 0; ky < s.kernel[1]; ++ky) {
        for (int64_t kx = 0; kx < s.kernel[2]; ++kx) {
          const int64_t across = kx * s.dilation[2];
          *offsets++ = c * channel + kd * (Direct ? s.dilation[0] : 1) * depth + ky * down * line +
                       (Direct ? across : across % s.stride[2] * phase + across / s.stride[2]);
        }
      }
    }
  }
}

// Computes a micro tile of MR channels (filters w[k][MR]) and NV vectors of pixels, starting at x. Part: reads only
// `left` pixels.
template <bool Part, typename T, int W, int MR, int NV, typename TB>
TILE_INLINE void planar_tile(const TB* TILE_RESTRICT w, const int64_t* TILE_RESTRICT offsets, int64_t k,
                             const T* TILE_RESTRICT x, int64_t left, vec<T, W> (&acc)[MR][NV]) {
  static_for<MR * NV>([&](auto i) __attribute__((always_inline)) { acc[i / NV][i % NV] = zero<T, W>(); });
  for (int64_t i = 0; i < k; ++i, w += MR) {
    const T* const p = x + offsets[i];
    vec<T, W> b[NV];
    static_for<NV>([&](auto j) __attribute__((always_inline)) {
      if constexpr (Part) {
        const int64_t n = left - j * W;
        b[j] = load_n<W>(p + j * W, n < 0 ? 0 : n < W ? n : W);
      } else {
        b[j] = load<W>(p + j * W);
      }
    });
    static_for<MR>([&](auto r) __attribute__((always_inline)) {
      const auto filter = splat<W>(convert<T>(load<1>(w + r)).v);
      static_for<NV>([&](auto j) __attribute__((always_inline)) { acc[r][j] = fma(filter, b[j], acc[r][j]); });
    });
  }
}

}  // namespace detail

// Micro tiles for windows in which neighbouring output rows use the same input lines. A micro tile has R rows of one
// output channel, so that each vector of pixels is loaded only once for all R rows.
template <int R, int KH, int KW, int Stride>
struct PlanarRows {
  static constexpr int kRows = R;
  // With 16 registers, compilers would keep the filters of larger windows on the stack. Such filters are reloaded
  // instead.
  static constexpr bool kReloads = !TILE_AVX512 && KH * KW > 16;

  // Computes a micro tile of R rows and NV vectors of pixels. `line`: the distance between input lines, in elements.
  template <typename T, int W, int NV, typename TB>
  static TILE_INLINE void tile(const TB* TILE_RESTRICT w, const int64_t* TILE_RESTRICT offsets, int64_t k,
                               const T* TILE_RESTRICT x, int64_t line, vec<T, W> (&acc)[R][NV]) {
    static_for<R * NV>([&](auto i) __attribute__((always_inline)) { acc[i / NV][i % NV] = zero<T, W>(); });
    for (int64_t i = 0; i < k; i += KH * KW, w += KH * KW) {
      static_for<((R - 1) * Stride + KH) * KW>([&](auto at) __attribute__((always_inline)) {
        constexpr int y = decltype(at)::value / KW, tap = decltype(at)::value % KW;
        const T* const p = x + offsets[i] + y * line + (offsets[tap] - offsets[0]);
        const TB* filters = w;
        if constexpr (kReloads) asm volatile("" : "+r"(filters));
        vec<T, W> b[NV];
        static_for<NV>([&](auto j) __attribute__((always_inline)) { b[j] = load<W>(p + j * W); });
        static_for<R>([&](auto r) __attribute__((always_inline)) {
          constexpr int ky = y - decltype(r)::value * Stride;
          if constexpr (ky >= 0 && ky < KH) {
            const auto filter = splat<W>(convert<T>(load<1>(filters + (ky * KW + tap))).v);
            static_for<NV>([&](auto j) __attribute__((always_inline)) { acc[r][j] = fma(filter, b[j], acc[r][j]); });
          }
        });
      });
    }
  }
};

namespace detail {

// Passes a micro tile to an epilogue whose lanes are channels. The arguments are those of finish_planar().
template <typename T, int W, int MR, int NV, typename Epilogue>
TILE_INLINE void finish_across(const vec<T, W> (&acc)[MR][NV], int64_t n, int64_t row, int64_t down, int64_t col,
                               int64_t across, int64_t count, int64_t left, const Epilogue& epilogue) {
  T c[MR * NV * W > W * W ? MR * NV * W : W * W];
  if (across == 0) {
    static_for<MR * NV>([&](auto i) __attribute__((always_inline)) { store(c + i * W, acc[i / NV][i % NV]); });
    for (int64_t i = 0; i < MR && i < count; ++i) {
      for (int64_t p = 0; p < NV * W && p < left; ++p) {
        epilogue.template operator()<1>(load<1>(c + i * NV * W + p), n, row + i * down + p, col, index_constant<1>{});
      }
    }
    return;
  }
  static_for<(MR + W - 1) / W * NV>([&](auto block) __attribute__((always_inline)) {
    constexpr int first = decltype(block)::value / NV * W, j = decltype(block)::value % NV;
    vec<T, W> r[W];
    static_for<W>([&](auto i) __attribute__((always_inline)) {
      if constexpr (first + i < MR) {
        r[i] = acc[first + i][j];
      } else {
        r[i] = zero<T, W>();
      }
    });
    transpose_rows(r);
    static_for<W>([&](auto i) __attribute__((always_inline)) { store(c + i * W, r[i]); });
    const int64_t here = count - first < MR - first ? count - first : MR - first, pixels = left - j * W;
    for (int64_t p = 0; here > 0 && p < W && p < pixels; ++p) {
      if (here >= W) {
        epilogue.template operator()<W>(load<W>(c + p * W), n, row + j * W + p, col + first, index_constant<W>{});
      } else {
        epilogue.template operator()<W>(load<W>(c + p * W), n, row + j * W + p, col + first, here);
      }
    }
  });
}

// Passes the first `count` lines of a micro tile to the epilogue, each with its first `left` pixels (at most NV
// vectors). From one line to the next, the epilogue's row increases by `down` pixels, and its column by `across`
// channels.
template <typename T, int W, int MR, int NV, typename Epilogue>
TILE_INLINE void finish_planar(const vec<T, W> (&acc)[MR][NV], int64_t n, int64_t row, int64_t down, int64_t col,
                               int64_t across, int64_t count, int64_t left, const Epilogue& epilogue) {
  if constexpr (!kAlongRows<Epilogue>) {
    return finish_across(acc, n, row, down, col, across, count, left, epilogue);
  }
  if (count >= MR && left >= NV * W) {
    static_for<MR * NV>([&](auto i) __attribute__((always_inline)) {
      epilogue.template operator()<W>(acc[i / NV][i % NV], n, row + i / NV * down + i % NV * W, col + i / NV * across,
                                      index_constant<W>{});
    });
    return;
  }
  T c[MR * NV * W];
  static_for<MR * NV>([&](auto i) __attribute__((always_inline)) { store(c + i * W, acc[i / NV][i % NV]); });
  for (int64_t i = 0; i < MR && i < count; ++i) {
    static_for<NV>([&](auto j) __attribute__((always_inline)) {
      const int64_t some = left - j * W, first = row + i * down + j * W;
      const auto sums = load<W>(c + (i * NV + j) * W);
      if (some >= W) {
        epilogue.template operator()<W>(sums, n, first, col + i * across, index_constant<W>{});
      } else if (some > 0) {
        epilogue.template operator()<W>(sums, n, first, col + i * across, some);
      }
    });
  }
}

}  // namespace detail

// Runs tasks [begin, end) of s.planar_tasks(), with micro tiles of MR channels and NV vectors of pixels. `scratch` has
// s.planar_scratch_bytes(sizeof(T), !Direct) bytes. Layout of the filters: [group][channels / MR][c][kd][kh][kw][MR].
// In calls of the epilogue, the batch is the image, the row is the output pixel in row-major order, and the column is
// the output channel. The epilogue's lanes are along rows, or along columns if it has no member kAlongRows. Direct: the
// image is read in place. No tap may then be outside of the image, the stride along rows must be 1, and pixels must
// have the type of the accumulators. Shared: PlanarRows (with MR = 1) if neighbouring output rows use the same input
// lines, else void.
template <int MR, int NV, bool Direct, typename T, typename Shared, typename TX, typename TB, typename Epilogue>
void conv_planar(const ConvShape& s, const TX* x, const TB* filters, const Epilogue& from, void* scratch, int64_t begin,
                 int64_t end) {
  constexpr int W = kVectorBytes / int(sizeof(T));
  const int64_t k = s.k(), tiles = panel_count(s.o, MR);
  const int64_t row_blocks = s.row_blocks(), pixel_blocks = s.pixel_blocks();
  const int64_t plane = s.in[0] * s.in[1] * s.in[2], line = Direct ? s.in[2] : s.planar_line(sizeof(T));
  int64_t* const offsets = static_cast<int64_t*>(scratch);
  T* const copied = reinterpret_cast<T*>(static_cast<char*>(scratch) + s.planar_offset_bytes());
  const Epilogue epilogue = from;
  detail::planar_offsets<Direct, T>(s, offsets);
  for (int64_t task = begin; task < end; ++task) {
    const int64_t ow = task % pixel_blocks * s.block_pixels, oh = task / pixel_blocks % row_blocks * s.block_rows;
    const int64_t rest = task / pixel_blocks / row_blocks, od = rest % s.out[0], g = rest / s.out[0] % s.groups;
    const int64_t n = rest / s.out[0] / s.groups;
    const int64_t rows = s.out[1] - oh < s.block_rows ? s.out[1] - oh : s.block_rows;
    const int64_t pixels = s.out[2] - ow < s.block_pixels ? s.out[2] - ow : s.block_pixels;
    const T* data = copied;
    int64_t readable = 0;  // number of elements from `data` to the end of the input
    if constexpr (Direct) {
      const int64_t at = (n * s.groups + g) * s.c * plane + (od * s.stride[0] - s.low[0]) * s.in[1] * line +
                         (oh * s.stride[1] - s.low[1]) * line + ow - s.low[2];
      data = x + at;
      readable = s.batch * s.groups * s.c * plane - at;
    } else {
      detail::copy_planar_block(s, x, n, g, od, oh, ow, copied);
    }
    const int64_t row0 = (od * s.out[1] + oh) * s.out[2] + ow;
    int64_t y = 0;
    if constexpr (!is_same<Shared, void>) {
      constexpr int R = Shared::kRows;
      for (; y < rows; y += R) {
        const int64_t first = y * s.stride[1] * line, last = first + (R - 1) * s.stride[1] * line + offsets[k - 1];
        if (Direct && last + panel_count(pixels, NV * W) * NV * W > readable) break;
        for (int64_t tile = 0; tile < tiles; ++tile) {
          for (int64_t at = 0; at < pixels; at += NV * W) {
            vec<T, W> acc[R][NV];
            Shared::tile(filters + (g * tiles + tile) * k, offsets, k, data + first + at, line, acc);
            detail::finish_planar(acc, n, row0 + y * s.out[2] + at, s.out[2], g * s.o + tile, 0, rows - y, pixels - at,
                                  epilogue);
          }
        }
      }
      if constexpr (!Direct) continue;
    }
    const int64_t together = s.pixels_together(NV * W, sizeof(T)), parts = panel_count(pixels, together);
    for (int64_t part = y * parts; part < rows * parts; ++part) {
      const int64_t at0 = part % parts * together, at1 = at0 + together < pixels ? at0 + together : pixels;
      const int64_t down = part / parts;
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const TB* const w = filters + (g * tiles + tile) * k * MR;
        const int64_t col = g * s.o + tile * MR, channels = s.o - tile * MR;
        for (int64_t at = at0; at < at1; at += NV * W) {
          const int64_t first = down * s.stride[1] * line + at, left = pixels - at;
          vec<T, W> acc[MR][NV];
          if (Direct && first + offsets[k - 1] + NV * W > readable) {
            detail::planar_tile<true>(w, offsets, k, data + first, left, acc);
          } else {
            detail::planar_tile<false>(w, offsets, k, data + first, left, acc);
          }
          detail::finish_planar(acc, n, row0 + down * s.out[2] + at, 0, col, 1, channels, left, epilogue);
        }
      }
    }
  }
}

}  // namespace heddle::tile
