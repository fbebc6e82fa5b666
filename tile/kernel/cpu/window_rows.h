// Pooling with lanes along the rows of an image. Vectors run over contiguous pixels and channels, so that they are full
// for one channel as well as for many. A window is folded one dimension at a time: first its lines into one line, then
// the pixels of that line. So a window costs the sum of its extents instead of their product.
#pragma once

#include "tile/kernel/cpu/window.h"

namespace heddle::tile {

namespace detail {

// Folds U vectors of windows. Long sums are compensated: every kLongSum taps, a partial sum is added to the total.
template <int W, int U, typename C, typename Op>
struct RowFold {
  const Op& op;
  vec<C, W> acc[U], total[U], error[U];
  int64_t taps = 0;

  TILE_INLINE explicit RowFold(const Op& fold) : op(fold) {
    static_for<U>([&](auto u) __attribute__((always_inline)) {
      acc[u] = op.template start<W>();
      if constexpr (Op::kLong) total[u] = error[u] = zero<C, W>();
    });
  }
  template <typename Load>
  TILE_INLINE void add(const Load& load) {
    static_for<U>([&](auto u) __attribute__((always_inline)) { acc[u] = op.step(acc[u], load(u), 0); });
    if constexpr (Op::kLong) {
      if (++taps < kLongSum) return;
      settle();
      taps = 0;
    }
  }
  TILE_INLINE vec<C, W> result(int u) {
    if constexpr (!Op::kLong) return acc[u];
    add_compensated(total[u], error[u], acc[u]);
    return total[u];
  }

 private:
  TILE_INLINE void settle() {
    static_for<U>([&](auto u) __attribute__((always_inline)) {
      add_compensated(total[u], error[u], acc[u]);
      acc[u] = op.template start<W>();
    });
  }
};

// The number of vectors that are folded together: enough to hide the latency of a step.
inline constexpr int kRowVectors = 4;

// The part of the input that a row of outputs reads: the first line of the row's windows and, for each of the first two
// dimensions, the range [lo, hi) of taps that are inside the image.
template <typename T>
struct WindowLines {
  const T* first;
  int64_t lo[2], hi[2];

  TILE_INLINE WindowLines(const WindowShape& s, const T* x, int64_t task) {
    const int64_t oh = task % s.out[1], od = task / s.out[1] % s.out[0], n = task / s.out[1] / s.out[0];
    valid_taps(s, 0, od, lo[0], hi[0]);
    valid_taps(s, 1, oh, lo[1], hi[1]);
    const int64_t line = (n * s.in[0] + od * s.stride[0] - s.low[0]) * s.in[1] + oh * s.stride[1] - s.low[1];
    first = x + line * s.in[2] * s.c;
  }
};

// Folds the lines of a row of windows into one line `to` of `span` pixels, which begins at pixel `at` of the input.
// Pixels outside the input get the value of an empty window.
template <typename T, typename C, typename Op>
TILE_INLINE void fold_lines(const WindowShape& s, const WindowLines<T>& lines, const Op& op, int64_t at, int64_t span,
                            C* to) {
  constexpr int W = kVectorBytes / int(sizeof(C)), U = kRowVectors;
  const int64_t row = s.in[2] * s.c, plane = row * s.in[1], end = at + span;
  const int64_t from = at < 0 ? (end < 0 ? end : 0) : at;
  const int64_t until = end < s.in[2] ? end : s.in[2], inside = until > from ? (until - from) * s.c : 0;
  const auto clear = [&](int64_t first, int64_t last) __attribute__((always_inline)) {
    for (int64_t i = first; i < last; i += W) store(to + i, op.template start<W>());
  };
  clear(0, (from - at) * s.c);
  C* const out = to + (from - at) * s.c;
  const T* const in = lines.first + from * s.c;
  const auto fold = [&](int64_t i, auto vectors, auto n) __attribute__((always_inline)) {
    RowFold<W, vectors, C, Op> sum(op);
    for (int64_t d = lines.lo[0]; d < lines.hi[0]; ++d) {
      for (int64_t y = lines.lo[1]; y < lines.hi[1]; ++y) {
        const T* p = in + d * s.dilation[0] * plane + y * s.dilation[1] * row + i;
        sum.add([&](auto u) __attribute__((always_inline)) { return load_n<W>(p + u * W, n); });
      }
    }
    static_for<vectors>([&](auto u) __attribute__((always_inline)) { store(out + i + u * W, sum.result(u)); });
  };
  int64_t i = 0;
  for (; i + U * W <= inside; i += U * W) fold(i, index_constant<U>{}, index_constant<W>{});
  for (; i + W <= inside; i += W) fold(i, index_constant<1>{}, index_constant<W>{});
  if (i < inside) {
    if (inside >= W) {
      fold(inside - W, index_constant<1>{}, index_constant<W>{});
    } else {
      fold(i, index_constant<1>{}, inside - i);
    }
  }
  clear((from - at) * s.c + inside, span * s.c);
}

// Groups the pixels of a line by their index modulo the stride.
template <typename C>
TILE_INLINE void split_phases(const WindowShape& s, const C* line, int64_t span, C* phases) {
  const int64_t step = s.stride[2], length = s.phase_elements();
  if (step == 2 && s.c == 1) {
    constexpr int W = kVectorBytes / int(sizeof(C));
    for (int64_t i = 0; 2 * i < span; i += W) {  // the last vectors extend into the padding of the buffer
      const auto lo = load<W>(line + 2 * i), hi = load<W>(line + 2 * i + W);
      store(phases + i, even_lanes(lo, hi));
      store(phases + length + i, odd_lanes(lo, hi));
    }
    return;
  }
  for (int64_t phase = 0; phase < step; ++phase) {
    C* out = phases + phase * length;
    for (int64_t x = phase; x < span; x += step, out += s.c) {
      for (int64_t c = 0; c < s.c; ++c) out[c] = line[x * s.c + c];
    }
  }
}

// Folds the pixels of windows along a line, for `count` elements of the output. Passes results to store(i, vector, n).
template <typename C, typename Op, typename Store>
TILE_INLINE void fold_pixels(const WindowShape& s, const C* phases, const Op& op, int64_t count, const Store& store) {
  constexpr int W = kVectorBytes / int(sizeof(C)), U = kRowVectors;
  const int64_t length = s.stride[2] > 1 ? s.phase_elements() : 0;
  const auto fold = [&](int64_t i, auto vectors, auto n) __attribute__((always_inline)) {
    RowFold<W, vectors, C, Op> sum(op);
    for (int64_t tap = 0; tap < s.kernel[2]; ++tap) {
      const int64_t at = tap * s.dilation[2];
      const C* p = phases + at % s.stride[2] * length + at / s.stride[2] * s.c + i;
      sum.add([&](auto u) __attribute__((always_inline)) { return load<W>(p + u * W); });
    }
    static_for<vectors>([&](auto u) __attribute__((always_inline)) { store(i + u * W, sum.result(u), n); });
  };
  int64_t i = 0;
  for (; i + U * W <= count; i += U * W) fold(i, index_constant<U>{}, index_constant<W>{});
  for (; i + W <= count; i += W) fold(i, index_constant<1>{}, index_constant<W>{});
  if (i < count) fold(i, index_constant<1>{}, count - i);
}

}  // namespace detail

// Does the same as window(), for operators without weights. The epilogue's `row` is a row of output pixels. Its `col`
// is where the vector begins in this row: pixel * s.c + channel. `scratch` has s.scratch_bytes(sizeof(compute_t<T>))
// bytes.
template <typename T, typename Op, typename Epilogue>
void window_rows(const WindowShape& s, const T* x, const Op& op, const Epilogue& epilogue, void* scratch, int64_t begin,
                 int64_t end) {
  using C = compute_t<T>;
  constexpr int W = kVectorBytes / int(sizeof(C));
  const int64_t most = s.lines(), length = s.line_elements(), block = s.block_pixels(), rows = s.out[0] * s.out[1];
  C* const lines = static_cast<C*>(scratch);
  C* const phases = lines + most * length;
  for (int64_t task = begin; task < end;) {
    const int64_t some = end - task < most ? end - task : most;
    for (int64_t ow = 0; ow < s.out[2]; ow += block) {
      const int64_t count = s.out[2] - ow < block ? s.out[2] - ow : block;
      const int64_t span = (count - 1) * s.stride[2] + s.reach() + 1;
      // Several lines are computed before the first one is read, because a load that spans two stores waits for both
      // stores.
      for (int64_t i = 0; i < some; ++i) {
        detail::fold_lines(s, detail::WindowLines<T>(s, x, task + i), op, ow * s.stride[2] - s.low[2], span,
                           lines + i * length);
      }
      for (int64_t i = 0; i < some; ++i) {
        const C* line = lines + i * length;
        if (s.stride[2] > 1) detail::split_phases(s, line, span, phases);
        detail::fold_pixels(
            s, s.stride[2] > 1 ? phases : line, op,
            count * s.c, [&](int64_t at, vec<C, W> v, auto n) __attribute__((always_inline)) {
              epilogue.template operator()<W>(v, (task + i) / rows, (task + i) % rows, ow * s.c + at, n);
            });
      }
    }
    task += some;
  }
}

}  // namespace heddle::tile
