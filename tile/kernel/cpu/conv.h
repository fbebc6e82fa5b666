// Convolution of channels-last images as implicit GEMM. The rows of the GEMM are the output pixels of one image row,
// and the columns are the output channels. A is read directly from the image, or from a padded copy of the image rows
// that a task needs.
#pragma once

#include "tile/kernel/cpu/gemm.h"
#include "tile/kernel/cpu/long_sums.h"

namespace heddle::tile {

// The part of the input that a block of output rows needs. Channel c at depth kd and line ky of a window is at
// data[kd * plane + ky * tap + y * row + x * pixel + c]. Here, y and x are the offsets in input lines and pixels from
// the first window of the block.
template <typename T>
struct ConvWindow {
  const T* data;
  int64_t plane, tap, row, pixel;
};

// ---- Forms of the input.

// An input that is read in place. It has the compute type, no padding and no input dilation.
template <typename T>
struct DirectX {
  const T* data;

  static constexpr bool kCopies = false;
  ConvWindow<T> prepare(const ConvShape& s, int64_t n, int64_t g, int64_t od, int64_t oh, int64_t, T*) const {
    const int64_t pixel = s.groups * s.c, row = pixel * s.in[2], plane = row * s.in[1];
    const int64_t d = od * s.stride[0] - s.low[0], y = oh * s.stride[1] - s.low[1], x = -s.low[2];
    return {data + n * s.in[0] * plane + d * plane + y * row + x * pixel + g * s.c, plane * s.dilation[0],
            row * s.dilation[1], row, pixel};
  }
};

// An input that is copied to scratch memory with its padding and the zeros of input dilation. The input may have any
// storage type and any strides (in elements). The first layer of a network may read a channels-first image this way.
// If T is a word of several values of type Element (words.h), each pixel's channels are copied to words, and the last
// word is filled with zeros. There are `channels` channels in a group; 0 stands for those of the shape.
template <typename T, typename TX, typename Element = T>
struct CopiedX {
  const TX* data;
  int64_t batch, stride[3], channel;
  int64_t channels = 0;

  // Returns the input for dense channels-last images.
  static CopiedX dense(const TX* data, const ConvShape& s) {
    const int64_t pixel = s.groups * s.c, row = pixel * s.in[2], plane = row * s.in[1];
    return {data, plane * s.in[0], {plane, row, pixel}, 1};
  }

  static constexpr bool kCopies = true;
  ConvWindow<T> prepare(const ConvShape& s, int64_t n, int64_t g, int64_t od, int64_t oh, int64_t rows,
                        T* scratch) const {
    const int64_t pixel = s.copied_pixel(sizeof(T)), width = s.reach(2, s.out[2]), row = width * pixel;
    const int64_t height = s.copied_lines(rows), some = s.leaves_lines(rows) ? s.lines_of_tap(rows) : height;
    const ConvWindow<T> window{scratch, height * row, (some < height ? some : s.dilation[1]) * row, row, pixel};
    for (int64_t kd = 0; kd < s.kernel[0]; ++kd) {
      const int64_t d = source(s, 0, od * s.stride[0] + kd * s.dilation[0]);
      for (int64_t y = 0; y < height; ++y) {
        const int64_t line = oh * s.stride[1] + y / some * s.dilation[1] + y % some;
        copy_row(s, n, g, d, source(s, 1, line), width, pixel, scratch + kd * window.plane + y * row);
      }
    }
    return window;
  }

 private:
  static constexpr int64_t kPerWord = sizeof(T) / sizeof(Element);

  // Returns the index in the stored input of position `at` in the padded, dilated input; -1 if that element is a zero
  // of the padding or dilation.
  static int64_t source(const ConvShape& s, int d, int64_t at) {
    at -= s.low[d];
    if (at < 0 || at % s.lhs_dilation[d] != 0) return -1;
    at /= s.lhs_dilation[d];
    return at < s.in[d] ? at : -1;
  }

  // Copies whole vectors of pixels of an image with few channels, each in a plane of its own, to one or two words a
  // pixel. Returns how many pixels of `run` it has copied.
  int64_t join_planes(int64_t c, int64_t words, const TX* in, int64_t run, T* to) const {
    if constexpr (kPerWord > 1 && is_integer<TX> && is_integer<Element>) {
      constexpr int W = kLanes, kBits = 32 / int(kPerWord);
      constexpr int32_t kMask = int32_t((uint64_t{1} << kBits) - 1);
      int64_t i = 0;
      for (; words <= 2 && i + W <= run; i += W) {
        vec<int32_t, W> r[2] = {zero<int32_t, W>(), zero<int32_t, W>()};
        for (int64_t k = 0; k < c; ++k) {
          const vec<int32_t, W> bits = convert<int32_t>(load<W>(in + k * channel + i)) & kMask;
          r[k / kPerWord] = r[k / kPerWord] | (bits << (kBits * int(k % kPerWord)));
        }
        if (words == 2) zip_rows(r);
        for (int64_t k = 0; k < words; ++k) store(to + i * words + k * W, r[k]);
      }
      return i;
    } else {
      return 0;
    }
  }

  void copy_row(const ConvShape& s, int64_t n, int64_t g, int64_t d, int64_t y, int64_t width, int64_t pixel,
                T* to) const {
    if (d < 0 || y < 0) return store_zero(to, width * pixel);
    const int64_t c = channels > 0 ? channels : s.c, step = pixel * kPerWord;
    const bool fills = c < s.c * kPerWord;
    Element* const out = reinterpret_cast<Element*>(to);
    const TX* in = data + n * batch + d * stride[0] + y * stride[1] + g * c * channel;
    int64_t x = 0;
    while (x < width) {
      const int64_t from = source(s, 2, x);
      if (from < 0) {
        store_zero(to + x * pixel, pixel);
        ++x;
        continue;
      }
      int64_t run = 1;  // the number of pixels from here on that are consecutive in the input
      if (s.lhs_dilation[2] == 1) run = width - x < s.in[2] - from ? width - x : s.in[2] - from;
      if (channel == 1 && step == stride[2] && step == c) {
        copy_matrix(out + x * step, 0, in + from * stride[2], 0, 1, 1, run * step);
      } else {
        const int64_t joined =
            pixel == s.c && stride[2] == 1 && channel != 1 ? join_planes(c, s.c, in + from, run, to + x * pixel) : 0;
        if (fills) store_zero(out + (x + joined) * step, (run - joined) * step);
        copy_matrix(out + (x + joined) * step, step, in + (from + joined) * stride[2], stride[2], channel, run - joined,
                    c);
      }
      x += run;
    }
  }
};

namespace detail {

// The contiguous segments of A along k, in the order of the filter elements, as MicroA expects them.
struct ConvSegments {
  const int64_t* offsets = nullptr;
  const int64_t* skips = nullptr;
  int64_t count = 0, length = 0;
};

// Returns the segments of A for those taps of the window that are in `box`. If the pixels of a window line are
// contiguous in memory, a segment is a line; otherwise it is a tap. Writes to `numbers` the offset of each segment in
// A, and its skip: the number of steps of k that B has before the segment and that A does not use.
template <typename T>
inline ConvSegments conv_segments(const ConvShape& s, const ConvWindow<T>& w, const ConvTaps& box, int64_t* numbers) {
  const bool joined = w.pixel == s.c && s.dilation[2] == 1;
  const int64_t across = box.end[2] - box.first[2], steps = joined && across > 0 ? 1 : across;
  ConvSegments made{numbers, numbers + s.taps(), 0, joined ? across * s.c : s.c};
  int64_t behind = 0;
  for (int64_t d = box.first[0]; d < box.end[0]; ++d) {
    for (int64_t y = box.first[1]; y < box.end[1]; ++y) {
      for (int64_t x = box.first[2]; x < box.first[2] + steps; ++x, ++made.count) {
        const int64_t first = ((d * s.kernel[1] + y) * s.kernel[2] + x) * s.c;
        numbers[made.count] = d * w.plane + y * w.tap + x * s.dilation[2] * w.pixel;
        numbers[s.taps() + made.count] = first - behind;
        behind = first + made.length;
      }
    }
  }
  return made;
}

inline ConvTaps all_taps(const ConvShape& s) {
  return {{0, 0, 0}, {int32_t(s.kernel[0]), int32_t(s.kernel[1]), int32_t(s.kernel[2])}};
}

// Returns the segments of A for all taps of the window.
template <typename T>
inline ConvSegments conv_segments(const ConvShape& s, const ConvWindow<T>& w, int64_t* numbers) {
  ConvSegments made = conv_segments(s, w, all_taps(s), numbers);
  made.skips = nullptr;
  return made;
}

}  // namespace detail

namespace detail {

// Output rows [oh, oh + rows) of one group of one image, with their input already prepared.
template <typename T>
struct ConvRows {
  int64_t n, g, od, oh, rows;
  ConvWindow<T> window;
  const ConvTaps* taps;  // the boxes of taps of the panels of all groups; null: all panels use all taps
  int64_t* numbers;      // scratch memory for the offsets and skips of segments
  ConvSegments segments;
  // Returns the segments of A for a panel. Panels with different `phase` use separate parts of the scratch memory.
  TILE_INLINE ConvSegments of_panel(const ConvShape& s, int64_t panel, int64_t phase) const {
    return taps == nullptr ? segments : conv_segments(s, window, taps[panel], numbers + 2 * phase * s.taps());
  }
  // True if some window lines of these rows are in the padding.
  bool leaves_image(const ConvShape& s) const {
    const int64_t first = oh * s.stride[1] - s.low[1];
    const int64_t last = first + (rows - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1];
    return s.lhs_dilation[1] == 1 && (first < 0 || last >= s.in[1]);
  }
  // Returns the segments of A for a panel and output row y of the block. Window lines in the padding are left out.
  ConvSegments of_row(const ConvShape& s, int64_t panel, int64_t phase, int64_t y) const {
    ConvTaps box = taps == nullptr ? all_taps(s) : taps[panel];
    const int64_t at = (oh + y) * s.stride[1] - s.low[1];
    while (box.first[1] < box.end[1] && at + box.first[1] * s.dilation[1] < 0) ++box.first[1];
    while (box.first[1] < box.end[1] && at + (box.end[1] - 1) * s.dilation[1] >= s.in[1]) --box.end[1];
    return conv_segments(s, window, box, numbers + 2 * phase * s.taps());
  }
};

// The number of panels that are multiplied before their results are stored together.
template <typename Epilogue>
inline constexpr int kPhases = 1;
template <typename Epilogue>
requires kPanelPhases<Epilogue>
inline constexpr int kPhases<Epilogue> = kInterleaved<Epilogue>;

// Computes output row `y` of the block for an epilogue that runs along rows. `bp` points to kPhases consecutive panels.
// `columns` is the number of remaining columns of each phase.
template <int NV, bool Narrow, typename T, typename TB, typename Epilogue>
TILE_INLINE void conv_row_along(const MicroKernels<T, TB>& micro, const ConvShape& s, const ConvRows<T>& block,
                                const ConvSegments* segments, int64_t y, const TB* bp, int64_t nr, int64_t col,
                                int64_t columns, const Epilogue& epilogue, T* c) {
  const int64_t line = block.od * s.out[1] + block.oh + y, pixel = s.stride[2] * block.window.pixel;
  const int64_t together = s.tiles_together(), phase = (together < s.tiles ? together : s.tiles) * micro.rows * nr;
  const T* const a = block.window.data + y * s.stride[1] * block.window.row;
  for (int64_t tile0 = 0; tile0 < s.tiles; tile0 += together) {
    const int64_t tile1 = tile0 + together < s.tiles ? tile0 + together : s.tiles;
    const int64_t first = s.tile_pixel(tile0, micro.rows), made = s.tile_pixel(tile1, micro.rows) - first;
    for (int64_t i = 0; i < kPhases<Epilogue>; ++i) {
      for (int64_t tile = tile0; tile < tile1; ++tile) {
        const int64_t ow = s.tile_pixel(tile, micro.rows);
        const ConvSegments& of = segments[i];
        const MicroA<T> op{a + ow * pixel, pixel, of.offsets, of.count, of.length, of.skips};
        T* const to = c + i * phase + (ow - first) * kPanel<T, NV>;
        micro.template run<Narrow>(tile < s.tall, op, bp + i * s.k() * nr, nr, to);
      }
    }
    const ResultRow results{block.n * s.out[0] * s.out[1] + line, s.results[0], s.results[1]};
    if constexpr (kPanelPhases<Epilogue>) {
      finish_phases<T, NV>(c, phase, made, first, results, col / kPhases<Epilogue>, columns, epilogue);
    } else if constexpr (kInterleaved < Epilogue >> 1) {
      finish_interleaved<T, NV>(c, made, first, results, col, columns, epilogue);
    } else {
      finish_along_rows<T, NV>(c, made, line * s.out[2] + first, block.n, col, columns, epilogue);
    }
  }
}

// Computes the rows of `block` for panels [panel0, panel1). `c` is scratch memory for the accumulators.
template <int NV, bool NarrowTail, typename T, typename TB, typename Epilogue>
TILE_INLINE void conv_block(const MicroKernels<T, TB>& micro, const ConvShape& s, const ConvRows<T>& block,
                            const TB* filters, const Epilogue& epilogue, int64_t panel0, int64_t panel1, T* c) {
  constexpr int64_t nr = kPanel<T, NV>, phases = kPhases<Epilogue>;
  const int64_t panels = s.panels(nr), k = s.k();
  const bool cuts = block.leaves_image(s);
  TileLines<T, NV> lines;
  for (int64_t panel = panel0; panel < panel1; panel += phases) {
    const TB* bp = filters + (block.g * panels + panel) * k * nr;
    ConvSegments segments[phases];
    for (int64_t i = 0; i < phases && !cuts; ++i) segments[i] = block.of_panel(s, block.g * panels + panel + i, i);
    for (int64_t y = 0; y < block.rows; ++y) {
      for (int64_t i = 0; i < phases && cuts; ++i) segments[i] = block.of_row(s, block.g * panels + panel + i, i, y);
      if constexpr (kAlongRows<Epilogue>) {
        const int64_t col = block.g * s.o + panel * nr, left = (s.o - panel * nr) / phases;
        if (NarrowTail && left <= nr / NV) {
          conv_row_along<NarrowTail ? 1 : NV, NarrowTail>(micro, s, block, segments, y, bp, nr, col, left, epilogue, c);
        } else {
          conv_row_along<NV, false>(micro, s, block, segments, y, bp, nr, col, left, epilogue, c);
        }
        continue;
      }
      for (int64_t tile = 0; tile < s.tiles; ++tile) {
        const int64_t ow = s.tile_pixel(tile, micro.rows), pixel = s.stride[2] * block.window.pixel;
        const T* a = block.window.data + y * s.stride[1] * block.window.row + ow * pixel;
        const ConvSegments& of = segments[0];
        const MicroA<T> op{a, pixel, of.offsets, of.count, of.length, of.skips};
        const bool tall = tile < s.tall;
        const int64_t row = (block.od * s.out[1] + block.oh + y) * s.out[2] + ow, count = micro.rows - (tall ? 0 : 1);
        const int64_t col = block.g * s.o + panel * nr, left = s.o - panel * nr;
        const bool asks = micro.rows >= kAskingRows;
        const Ahead ahead = asks ? lines.find(epilogue, count, row, block.n, col, k) : Ahead{};
        if (NarrowTail && left <= nr / NV) {
          micro.template run<NarrowTail>(tall, op, bp, nr, c, ahead);
          finish_tile<T, NarrowTail ? 1 : NV>(c, count, row, block.n, col, left, epilogue);
        } else {
          micro.template run<false>(tall, op, bp, nr, c, ahead);
          finish_tile<T, NV>(c, count, row, block.n, col, left, epilogue);
        }
      }
    }
  }
}

}  // namespace detail

namespace detail {

// A part of k: one or several whole segments, or a part of one segment. next_steps() returns the part after `before`,
// with at most `most` elements of k.
struct ConvSteps {
  int64_t segment, segments, first, length;
};
inline ConvSteps next_steps(const ConvSteps& before, int64_t segments, int64_t length, int64_t most) {
  ConvSteps s{before.segment, 1, before.first + before.length, 0};
  if (s.first == length) s.segment += before.segments, s.first = 0;
  if (length <= most) s.segments = most / length;
  if (s.segments > segments - s.segment) s.segments = segments - s.segment;
  s.length = length - s.first < most ? length - s.first : most;
  return s;
}

// conv_block() for long k. It computes the products of s.block_k elements of k at a time for a whole row of outputs,
// and adds them to the sums of the row.
template <int NV, bool NarrowTail, typename T, typename TB, typename Epilogue>
void conv_block_long(const MicroKernels<T, TB>& micro, const ConvShape& s, const ConvRows<T>& block, const TB* filters,
                     const Epilogue& epilogue, int64_t panel0, int64_t panel1, T* c) {
  constexpr int64_t nr = kPanel<T, NV>;
  const int64_t panels = panel_count(s.o, nr), elements = micro.rows * nr;
  const int64_t pixel = s.stride[2] * block.window.pixel;
  const LongSums<T> sums{c + elements, c + (1 + s.tiles) * elements, elements};
  for (int64_t panel = panel0; panel < panel1; ++panel) {
    const TB* b = filters + (block.g * panels + panel) * s.k() * nr;
    const int64_t col = block.g * s.o + panel * nr, left = s.o - panel * nr;
    const bool narrow = NarrowTail && left <= nr / NV;
    const auto rows_of = [&](int64_t tile) { return micro.rows - (tile < s.tall ? 0 : 1); };
    for (int64_t y = 0; y < block.rows; ++y) {
      const T* line = block.window.data + y * s.stride[1] * block.window.row;
      const ConvSegments& of = block.segments;
      ConvSteps steps = next_steps({0, 0, 0, 0}, of.count, of.length, s.block_k);
      for (; steps.segment < of.count; steps = next_steps(steps, of.count, of.length, s.block_k)) {
        const TB* bp = b + (steps.segment * of.length + steps.first) * nr;
        const bool is_first = steps.segment == 0 && steps.first == 0;
        for (int64_t tile = 0; tile < s.tiles; ++tile) {
          const T* a = line + s.tile_pixel(tile, micro.rows) * pixel + steps.first;
          const MicroA<T> op{a, pixel, of.offsets + steps.segment, steps.segments, steps.length};
          if (narrow) {
            micro.template run<NarrowTail>(tile < s.tall, op, bp, nr, c);
          } else {
            micro.template run<false>(tile < s.tall, op, bp, nr, c);
          }
          sums.add(tile, c, rows_of(tile) * (narrow ? nr / NV : nr), is_first);
        }
      }
      const int64_t first = (block.od * s.out[1] + block.oh + y) * s.out[2];
      for (int64_t tile = 0; tile < s.tiles; ++tile) {
        const int64_t row = first + s.tile_pixel(tile, micro.rows);
        if (narrow) {
          finish_tile<T, NarrowTail ? 1 : NV>(sums.tile(tile), rows_of(tile), row, block.n, col, left, epilogue);
        } else {
          finish_tile<T, NV>(sums.tile(tile), rows_of(tile), row, block.n, col, left, epilogue);
        }
      }
    }
  }
}

}  // namespace detail

// Runs tasks [begin, end) of s.tasks(kPanel<T, NV>).
//   filters   [group][panel][kd][kh][kw][c][NR] (core/pack.h)
//   epilogue  as for gemm(): batch is the image, row the output pixel in row-major order, col the output channel
//   scratch   s.scratch_bytes(micro.rows, kPanel<T, NV>, sizeof(T), X::kCopies, kAlongRows<Epilogue>) bytes
//   taps      optional: the box of taps of each panel of each group; must be null if Long
//   Long      adds the sums of parts of k with compensation; each part has s.block_k products
template <int NV, bool NarrowTail = false, bool Long = false, typename T, typename TB, typename X, typename Epilogue>
void conv(const MicroKernels<T, TB>& micro, const ConvShape& s, const X& x, const TB* filters, const Epilogue& epilogue,
          void* scratch, int64_t begin, int64_t end, const ConvTaps* taps = nullptr) {
  constexpr int64_t nr = kPanel<T, NV>;
  const int64_t n_blocks = s.n_blocks(nr), row_blocks = s.row_blocks(), panels = s.panels(nr);
  T* const c = reinterpret_cast<T*>(static_cast<char*>(scratch) + s.offset_bytes());
  T* const x_scratch = c + s.accumulators(detail::kAlongRows<Epilogue>) * micro.rows * nr;
  detail::ConvRows<T> at{};
  at.taps = taps, at.numbers = static_cast<int64_t*>(scratch);
  int64_t ready = -1;
  for (int64_t task = begin; task < end; ++task) {
    const int64_t block = task / n_blocks;
    if (ready != block) {  // the tasks of a block are consecutive, so its input is prepared once
      at.oh = block % row_blocks * s.block_rows;
      at.rows = s.out[1] - at.oh < s.block_rows ? s.out[1] - at.oh : s.block_rows;
      at.od = block / row_blocks % s.out[0];
      at.g = block / row_blocks / s.out[0] % s.groups;
      at.n = block / row_blocks / s.out[0] / s.groups;
      at.window = x.prepare(s, at.n, at.g, at.od, at.oh, at.rows, x_scratch);
      if (taps == nullptr) at.segments = detail::conv_segments(s, at.window, at.numbers);
      ready = block;
    }
    const int64_t panel0 = task % n_blocks * s.block_panels;
    const int64_t panel1 = panel0 + s.block_panels < panels ? panel0 + s.block_panels : panels;
    if constexpr (Long) {
      detail::conv_block_long<NV, NarrowTail>(micro, s, at, filters, epilogue, panel0, panel1, c);
    } else {
      detail::conv_block<NV, NarrowTail>(micro, s, at, filters, epilogue, panel0, panel1, c);
    }
  }
}

// Computes all channels of output rows [oh, oh + rows) of image n, which has depth 1. The scratch memory has the size
// that conv() needs for blocks of `rows` rows.
template <int NV, bool NarrowTail = false, typename T, typename TB, typename X, typename Epilogue>
void conv_rows(const MicroKernels<T, TB>& micro, const ConvShape& s, const X& x, const TB* filters,
               const Epilogue& epilogue, void* scratch, int64_t n, int64_t oh, int64_t rows,
               const ConvTaps* taps = nullptr) {
  constexpr int64_t nr = kPanel<T, NV>;
  T* const c = reinterpret_cast<T*>(static_cast<char*>(scratch) + s.offset_bytes());
  detail::ConvRows<T> at{n, 0, 0, oh, rows, {}, taps, static_cast<int64_t*>(scratch), {}};
  for (at.g = 0; at.g < s.groups; ++at.g) {
    at.window = x.prepare(s, n, at.g, 0, oh, rows, c + micro.rows * nr);
    if (taps == nullptr) at.segments = detail::conv_segments(s, at.window, at.numbers);
    detail::conv_block<NV, NarrowTail>(micro, s, at, filters, epilogue, 0, s.panels(nr), c);
  }
}

}  // namespace heddle::tile
