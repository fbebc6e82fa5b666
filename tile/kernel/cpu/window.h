// Kernels that slide a window over channels-last images: depthwise convolution and pooling. Vector lanes are channels.
// The kernels are limited by memory bandwidth, so they read the input in place and skip the taps in the padding.
#pragma once

#include "tile/arch/cpu/vec.h"
#include "tile/core/shape.h"
#include "tile/core/static_for.h"
#include "tile/kernel/cpu/transpose.h"
#include "tile/kernel/cpu/window_pairs.h"
#include "tile/kernel/cpu/words.h"
#include "tile/op/reduce.h"

namespace heddle::tile {

namespace detail {

// Computes the range [first, last) of the taps along dimension d that are inside the input, for the output index `at`.
TILE_INLINE void valid_taps(const WindowShape& s, int d, int64_t at, int64_t& first, int64_t& last) {
  const int64_t start = at * s.stride[d] - s.low[d], step = s.dilation[d];
  first = start >= 0 ? 0 : (-start + step - 1) / step;
  last = start >= s.in[d] ? 0 : (s.in[d] - 1 - start) / step + 1;
  if (last > s.kernel[d]) last = s.kernel[d];
  if (first > last) first = last;
}

// Computes the range [first, last) of the outputs along the width for which all taps are inside the input.
inline void inner_outputs(const WindowShape& s, int64_t& first, int64_t& last) {
  const int64_t reach = (s.kernel[2] - 1) * s.dilation[2];
  first = s.low[2] <= 0 ? 0 : (s.low[2] + s.stride[2] - 1) / s.stride[2];
  const int64_t room = s.in[2] - 1 - reach + s.low[2];
  last = room < 0 ? 0 : room / s.stride[2] + 1;
  if (last > s.out[2]) last = s.out[2];
  if (first > last) first = last;
}

// The number of pixels that are processed together. It gives enough independent accumulators to hide the latency of an
// addition.
inline constexpr int kWindowPixels = 6;
// The same for pixels whose channels are multiplied in words, which have two sums: with 16 registers, fewer leave room.
inline constexpr int kWordPixels = TILE_AVX512 ? kWindowPixels : 4;

// Adds the products of K neighbouring taps of a line to those of `Pixels` neighbouring outputs. The outputs share the
// input pixels, each of which is loaded and converted once. `tap` is the number of the first tap.
template <int K, int W, int Pixels, typename T, typename Op, typename N>
TILE_INLINE void add_line(const T* line, int64_t pitch, const Op& op, int64_t tap, int64_t channel, N n,
                          vec<typename Op::compute, W> (&acc)[Pixels]) {
  decltype(op.template weight<W>(tap, channel, n)) w[K];
  static_for<K>([&](auto k) { w[k] = op.template weight<W>(tap + k, channel, n); });
  static_for<Pixels + K - 1>([&](auto j) {
    const auto pixel = convert<typename Op::compute>(load_n<W>(line + j * pitch, n));
    static_for<K>([&](auto k) {
      constexpr int i = int(decltype(j)::value) - int(decltype(k)::value);
      if constexpr (i >= 0 && i < Pixels) acc[i] = op.step(acc[i], pixel, w[k]);
    });
  });
}

// Computes one vector of channels for `Pixels` neighbouring outputs, over the taps [lo[d], hi[d]) of each dimension d.
template <int W, int Pixels, typename T, typename Op, typename N>
requires(!Op::kLong) TILE_INLINE
    void window_tile(const WindowShape& s, const T* in, const int64_t (&lo)[3], const int64_t (&hi)[3], const Op& op,
                     int64_t channel, N n, vec<typename Op::compute, W> (&acc)[Pixels]) {
  const int64_t row = s.in[2] * s.pitch(), plane = row * s.in[1], step = s.stride[2] * s.pitch();
  static_for<Pixels>([&](auto i) { acc[i] = op.template start<W>(); });
  for (int64_t d = lo[0]; d < hi[0]; ++d) {
    for (int64_t y = lo[1]; y < hi[1]; ++y) {
      const T* line = in + d * s.dilation[0] * plane + y * s.dilation[1] * row;
      // Sharing pays if pixels are converted and weights of a line stay in registers.
      if constexpr (Pixels > 1 && TILE_AVX512 && sizeof(T) < sizeof(typename Op::compute)) {
        // All of these outputs have all taps of a line.
        const int64_t first = (d * s.kernel[1] + y) * s.kernel[2];
        const bool shared = s.stride[2] == 1 && s.dilation[2] == 1;
        if (shared && s.kernel[2] == 3) {
          add_line<3>(line, s.pitch(), op, first, channel, n, acc);
          continue;
        }
        if (shared && s.kernel[2] == 5) {
          add_line<5>(line, s.pitch(), op, first, channel, n, acc);
          continue;
        }
      }
      for (int64_t x = lo[2]; x < hi[2]; ++x) {
        const T* p = line + x * s.dilation[2] * s.pitch();
        const int64_t tap = (d * s.kernel[1] + y) * s.kernel[2] + x;
        const auto w = op.template weight<W>(tap, channel, n);
        static_for<Pixels>(
            [&](auto i) { acc[i] = op.step(acc[i], convert<typename Op::compute>(load_n<W>(p + i * step, n)), w); });
      }
    }
  }
}

// The overload for sums over long windows. Adds partial sums of kLongSum taps with compensation. For a single pixel,
// neighbouring taps are added to separate accumulators, so that an addition does not wait for the previous one.
template <int W, int Pixels, typename T, typename Op, typename N>
requires Op::kLong void window_tile(const WindowShape& s, const T* in, const int64_t (&lo)[3], const int64_t (&hi)[3],
                                    const Op& op, int64_t channel, N n, vec<compute_t<T>, W> (&total)[Pixels]) {
  constexpr int Chains = Pixels == 1 ? 4 : 1;
  using V = vec<compute_t<T>, W>;
  const int64_t row = s.in[2] * s.pitch(), plane = row * s.in[1];
  const int64_t step = s.stride[2] * s.pitch(), next = s.dilation[2] * s.pitch();
  V acc[Chains][Pixels], error[Pixels];
  const auto clear = [&]() __attribute__((always_inline)) {
    static_for<Chains * Pixels>([&](auto i) { acc[i / Pixels][i % Pixels] = op.template start<W>(); });
  };
  const auto settle = [&]() __attribute__((always_inline)) {
    static_for<Pixels>([&](auto i) {
      V sum = acc[0][i];
      static_for<Chains - 1>([&](auto chain) { sum = sum + acc[chain + 1][i]; });
      add_compensated(total[i], error[i], sum);
    });
    clear();
  };
  static_for<Pixels>([&](auto i) { total[i] = error[i] = op.template start<W>(); });
  clear();
  int64_t taps = 0;
  for (int64_t d = lo[0]; d < hi[0]; ++d) {
    for (int64_t y = lo[1]; y < hi[1]; ++y) {
      const T* p = in + d * s.dilation[0] * plane + y * s.dilation[1] * row + lo[2] * next;
      int64_t tap = (d * s.kernel[1] + y) * s.kernel[2] + lo[2];
      const auto add = [&](auto chain) __attribute__((always_inline)) {
        const auto w = op.template weight<W>(tap, channel, n);
        static_for<Pixels>([&](auto i) { acc[chain][i] = op.step(acc[chain][i], load_n<W>(p + i * step, n), w); });
        p += next;
        ++tap;
      };
      for (int64_t left = hi[2] - lo[2]; left > 0;) {
        const int64_t count = left < kLongSum - taps ? left : kLongSum - taps;
        int64_t x = 0;
        for (; x + Chains <= count; x += Chains) static_for<Chains>(add);
        if constexpr (Chains > 1) {
          for (; x < count; ++x) add(index_constant<0>{});
        }
        left -= count;
        if ((taps += count) < kLongSum) continue;
        settle();
        taps = 0;
      }
    }
  }
  settle();
}

// True if the op multiplies pairs of taps.
template <typename Op>
inline constexpr bool kInPairs = requires {
  typename Op::word;
  Op::kWidth;
};

// True if the op multiplies elements in words: it has a type `word`.
template <typename Op>
inline constexpr bool kInWords = requires {
  typename Op::word;
  requires !kInPairs<Op>;
};

// window_tile() and its epilogue for an op that multiplies in words. The tile has `words` words of channels, at most W.
template <int Pixels, typename T, typename Op, typename N, typename Epilogue>
TILE_INLINE void window_words(const WindowShape& s, const T* in, const int64_t (&lo)[3], const int64_t (&hi)[3],
                              const Op& op, int64_t channel, N words, const Epilogue& epilogue, int64_t image,
                              int64_t pixel) {
  using Word = typename Op::word;
  using Sum = typename Word::sum;
  constexpr int W = kLanes, E = Word::kElements;
  const int64_t row = s.in[2] * s.pitch(), plane = row * s.in[1], step = s.stride[2] * s.pitch();
  vec<Sum, W> acc[Pixels][E];
  static_for<Pixels * E>([&](auto i) { acc[i / E][i % E] = zero<Sum, W>(); });
  for (int64_t d = lo[0]; d < hi[0]; ++d) {
    for (int64_t y = lo[1]; y < hi[1]; ++y) {
      const T* line = in + d * s.dilation[0] * plane + y * s.dilation[1] * row;
      for (int64_t x = lo[2]; x < hi[2]; ++x) {
        const T* p = line + x * s.dilation[2] * s.pitch();
        vec<Sum, W> w[E];
        op.weights((d * s.kernel[1] + y) * s.kernel[2] + x, channel, words, w);
        static_for<Pixels>([&](auto i) {
          const vec<Sum, W> some = load_n<W>(reinterpret_cast<const Sum*>(p + i * step), words);
          static_for<E>([&](auto e) { acc[i][e] = multiply_words<Word>(some, w[e], acc[i][e]); });
        });
      }
    }
  }
  static_for<Pixels>([&](auto i) __attribute__((always_inline)) { zip_rows(acc[i]); });
  const Epilogue last = epilogue;  // which stores do not change
  const int64_t full = words * E / W, left = words * E - full * W;
  for (int i = 0; i < Pixels; ++i) {
    for (int64_t e = 0; e < full; ++e) {
      last.template operator()<W>(acc[i][e], image, pixel + i, channel + e * W, index_constant<W>{});
    }
    if (left > 0) last.template operator()<W>(acc[i][full], image, pixel + i, channel + full * W, left);
  }
}

// Computes a row of outputs in pairs of taps. `line` is the line of the input that is under line lo of the kernel.
// Returns the number of channels that are computed.
template <typename T, typename Op, typename Epilogue>
TILE_INLINE int64_t window_row_pairs(const WindowShape& s, const T* line, int64_t lo, int64_t hi, const Op& op,
                                     const Epilogue& from, int64_t image, int64_t pixel) {
  constexpr int W = kLanes;
  int64_t done = 0, inner0, inner1;
  inner_outputs(s, inner0, inner1);
  const PairedRow<Op> row(s, op, line, lo, hi);
  const Epilogue epilogue = from;  // which stores do not change
  for (; done + 2 * W <= s.c; done += 2 * W) {
    const auto store = [&](int64_t at, auto sums) __attribute__((always_inline)) {
      epilogue.template operator()<2 * W>(sums, image, pixel + at, done, index_constant<2 * W>{});
    };
    row.run(done, index_constant<W>{}, inner0, inner1, store);
  }
  // One vector of channels is widened faster than a part of a vector of words is loaded.
  if (const int64_t left = s.c - done; left > W && left % 2 == 0) {
    const auto store = [&](int64_t at, auto sums) __attribute__((always_inline)) {
      epilogue.template operator()<W>(sums.lo, image, pixel + at, done, index_constant<W>{});
      epilogue.template operator()<W>(sums.hi, image, pixel + at, done + W, left - W);
    };
    row.run(done, left / 2, inner0, inner1, store);
    done = s.c;
  }
  return done;
}

}  // namespace detail

// Reduces each window with `op`, which has these members:
//
//   start<W>()                 the result for an empty window
//   weight<W>(tap, channel, n) the third argument of step(): the weights of a tap; unused by some ops
//   step(acc, x, weight)       the accumulator after one more element x
//   kLong                      true if sums have so many taps that they must be compensated
//   compute                    the type of the accumulators; the input is converted to it
//   word                       optional: words of channels are multiplied, by weights(tap, channel, n, w)
//   kLines, kWidth, kStride    optional, with `word`: pairs of taps are multiplied (window_pairs.h)
//
// The epilogue is as for gemm(): the batch is the image, the row is the output pixel, and the column is the first
// channel of the vector. Runs tasks [begin, end) of s.tasks(). Needs no scratch. The input and the output have the same
// channels.
template <typename T, typename Op, typename Epilogue>
void window(const WindowShape& s, const T* x, const Op& op, const Epilogue& epilogue, int64_t begin, int64_t end) {
  using C = typename Op::compute;
  constexpr int W = kVectorBytes / int(sizeof(C)),
                P = detail::kInWords<Op> ? detail::kWordPixels : detail::kWindowPixels;
  const int64_t row = s.in[2] * s.pitch(), plane = row * s.in[1];
  int64_t inner0, inner1;
  detail::inner_outputs(s, inner0, inner1);
  for (int64_t task = begin; task < end; ++task) {
    const int64_t oh = task % s.out[1], od = task / s.out[1] % s.out[0], n = task / s.out[1] / s.out[0];
    int64_t lo[3], hi[3];
    detail::valid_taps(s, 0, od, lo[0], hi[0]);
    detail::valid_taps(s, 1, oh, lo[1], hi[1]);
    const T* base = x + n * s.in[0] * plane + (od * s.stride[0] - s.low[0]) * plane +
                    (oh * s.stride[1] - s.low[1]) * row - s.low[2] * s.pitch();
    const int64_t pixel0 = (od * s.out[1] + oh) * s.out[2];
    int64_t done = 0;  // channels
    if constexpr (detail::kInPairs<Op>) {
      if (lo[0] < hi[0]) {  // otherwise the window lies in the padding
        const T* line = base + s.low[2] * s.pitch() + lo[1] * s.dilation[1] * row;
        done = detail::window_row_pairs(s, line, lo[1], hi[1], op, epilogue, n, pixel0);
        if (done == s.c) continue;
      }
    }
    for (int64_t ow = 0; ow < s.out[2];) {
      detail::valid_taps(s, 2, ow, lo[2], hi[2]);
      const bool many = ow >= inner0 && ow + P <= inner1;
      const T* in = base + ow * s.stride[2] * s.pitch();
      const auto run = [&](int64_t channel, auto count) {
        if (many) {
          vec<C, W> acc[P];
          detail::window_tile<W, P>(s, in + channel, lo, hi, op, channel, count, acc);
          for (int i = 0; i < P; ++i) epilogue.template operator()<W>(acc[i], n, pixel0 + ow + i, channel, count);
        } else {
          vec<C, W> acc[1];
          detail::window_tile<W, 1>(s, in + channel, lo, hi, op, channel, count, acc);
          epilogue.template operator()<W>(acc[0], n, pixel0 + ow, channel, count);
        }
      };
      int64_t channel = done;
      if constexpr (detail::kInWords<Op>) {
        constexpr int E = Op::word::kElements;
        const auto run_words = [&](auto words) {
          if (many) {
            detail::window_words<P>(s, in + channel, lo, hi, op, channel, words, epilogue, n, pixel0 + ow);
          } else {
            detail::window_words<1>(s, in + channel, lo, hi, op, channel, words, epilogue, n, pixel0 + ow);
          }
        };
        for (; channel + E * W <= s.c; channel += E * W) run_words(index_constant<W>{});
        // One vector of channels is widened faster than a part of a vector of words is loaded.
        if (s.c - channel > W && (s.c - channel) % E == 0) {
          run_words((s.c - channel) / E);
          channel = s.c;
        }
      }
      for (; channel + W <= s.c; channel += W) run(channel, index_constant<W>{});
      if (channel < s.c) run(channel, s.c - channel);
      ow += many ? P : 1;
    }
  }
}

// Depthwise convolution. The filters have the layout [tap][channel].
template <typename C, typename TF = C, bool Long = false>
struct DepthwiseOp {
  using compute = C;
  static constexpr bool kLong = Long;
  // Products of integers of at most 16 bits take one instruction. The upper half of the weights' lanes is zero.
  static constexpr bool kShort = TILE_AVX512 && is_same<C, int32_t> && sizeof(TF) <= 2;
  const TF* filters;
  int64_t c;

  template <int W>
  TILE_INLINE vec<C, W> start() const {
    return zero<C, W>();
  }
  template <int W, typename N>
  TILE_INLINE vec<C, W> weight(int64_t tap, int64_t channel, N n) const {
    const vec<C, W> w = convert<C>(load_n<W>(filters + tap * c + channel, n));
    if constexpr (kShort) {
      return w & 0xffff;
    } else {
      return w;
    }
  }
  template <int W>
  TILE_INLINE vec<C, W> step(vec<C, W> acc, vec<C, W> x, vec<C, W> w) const {
    if constexpr (kShort) {
      return add_short_products(x, w, acc);
    } else {
      return fma(x, w, acc);
    }
  }
};

// DepthwiseOp with products of words (words.h). The channels of a word have separate sums, so each filter is multiplied
// as a word with one element that is not zero. This wastes products, but nothing is widened.
template <typename Word>
struct DepthwiseWordsOp : DepthwiseOp<typename Word::sum, typename Word::b_element> {
  using word = Word;

  // Of `n` words of channels: the words of w[e] have element e alone.
  template <int W, typename N>
  TILE_INLINE void weights(int64_t tap, int64_t channel, N n, vec<typename Word::sum, W> (&w)[Word::kElements]) const {
    constexpr int kBits = 32 / Word::kElements;
    const auto* all = reinterpret_cast<const int32_t*>(this->filters + tap * this->c + channel);
    const vec<int32_t, W> words = load_n<W>(all, n);
    static_for<Word::kElements>([&](auto e) {
      constexpr uint32_t kElement = uint32_t((uint64_t{1} << kBits) - 1) << kBits * int(e);
      w[e] = bit_cast<typename Word::sum>(words & int32_t(kElement));
    });
  }
};

// DepthwiseOp with products of pairs of taps (window_pairs.h). The kernel has one plane of kLines lines, each kWidth
// pixels wide and without dilation along it, and the stride kStride along lines.
template <typename Word, int Lines, int Width, int Stride>
struct DepthwisePairsOp : DepthwiseOp<typename Word::sum, typename Word::b_element> {
  using word = Word;
  static constexpr int kLines = Lines, kWidth = Width, kStride = Stride;
};

enum class WindowKind { kSum, kProd, kMax, kMin };

// Pooling. Elements in the padding have the value of the reduction's identity.
template <WindowKind Kind, typename C, bool Long = false>
struct PoolOp {
  static_assert(!Long || Kind == WindowKind::kSum);
  using compute = C;
  static constexpr bool kLong = Long;

  template <int W>
  TILE_INLINE vec<C, W> start() const {
    if constexpr (Kind == WindowKind::kSum) {
      return zero<C, W>();
    } else if constexpr (Kind == WindowKind::kProd) {
      return splat<W>(C(1));
    } else {
      return splat<W>(Kind == WindowKind::kMax ? lowest<C>() : highest<C>());
    }
  }
  template <int W, typename N>
  TILE_INLINE int weight(int64_t, int64_t, N) const {
    return 0;
  }
  template <int W>
  TILE_INLINE vec<C, W> step(vec<C, W> acc, vec<C, W> x, int) const {
    if constexpr (Kind == WindowKind::kSum) {
      return acc + x;
    } else if constexpr (Kind == WindowKind::kProd) {
      return acc * x;
    } else if constexpr (Kind == WindowKind::kMax) {
      return max(acc, x);
    } else {
      return min(acc, x);
    }
  }
};

}  // namespace heddle::tile
