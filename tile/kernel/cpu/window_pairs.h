// Depthwise convolutions of 16-bit elements whose taps are multiplied in pairs: a word (words.h) has the elements of
// one channel under two neighbouring taps, so no product is wasted. Taps of two lines are paired, and those of a last
// odd line with their right neighbours. Neighbouring outputs share pixels, each of which is loaded and paired once.
#pragma once

#include "tile/arch/cpu/vec.h"
#include "tile/core/shape.h"
#include "tile/core/static_for.h"
#include "tile/kernel/cpu/words.h"

namespace heddle::tile {

namespace detail {

// Two vectors of words of channels a and b, as words of pairs (a, b) of one channel each. Each block of eight channels
// has its first half in `low` and its second half in `high`: shuffles across 128 bits would cost more.
template <int High, typename T, int W, int... I>
TILE_INLINE vec<T, W> pair_channels(vec<T, W> a, vec<T, W> b, indices<I...>) {
  using Shorts = typename vec<int16_t, 2 * W>::native;
  const auto both = __builtin_shufflevector(__builtin_bit_cast(Shorts, a.v), __builtin_bit_cast(Shorts, b.v),
                                            (I / 8 * 8 + High * 4 + I % 8 / 2 + I % 2 * 2 * W)...);
  return {__builtin_bit_cast(typename vec<T, W>::native, both)};
}

// Half number `Half` of the sums of neighbouring channels, from those of pair_channels().
template <int Half, typename T, int W, int... I>
TILE_INLINE vec<T, W> in_order(vec<T, W> low, vec<T, W> high, indices<I...>) {
  return {__builtin_shufflevector(low.v, high.v, ((Half * W + I) / 8 * 4 + I % 4 + (Half * W + I) / 4 % 2 * W)...)};
}

template <typename T, int W>
struct ChannelPairs {
  vec<T, W> low, high;

  ChannelPairs() = default;
  TILE_INLINE ChannelPairs(vec<T, W> a, vec<T, W> b)
      : low(pair_channels<0>(a, b, make_indices<2 * W>{})), high(pair_channels<1>(a, b, make_indices<2 * W>{})) {}
};

}  // namespace detail

// A row of outputs. The lines of the kernel that are inside the image are [lo, hi). `op` is a DepthwisePairsOp.
template <typename Op>
class PairedRow {
  using Word = typename Op::word;
  using T = typename Word::sum;
  using Element = typename Word::b_element;
  static constexpr int K = Op::kWidth, S = Op::kStride, W = kLanes;
  static constexpr int kPairs = Op::kLines / 2 * K + (Op::kLines % 2) * ((K + 1) / 2);
  using Pairs = detail::ChannelPairs<T, W>;
  // With 16 registers, sums of three outputs leave room for the weights of a line.
  static constexpr int kPixels = TILE_AVX512 ? 6 : 3;

 public:
  // `line` is the input's line under the first line of the kernel that is inside the image.
  PairedRow(const WindowShape& s, const Op& op, const void* line, int64_t lo, int64_t hi)
      : s_(s), op_(op), line_(static_cast<const Element*>(line)), lo_(lo), lines_(hi - lo) {}

  // Computes `words` words of channels, at most W, from `channel` on. The outputs [inner0, inner1) have all pixels of
  // their windows inside the image. Passes the sums of each output, 2 * W of them, to store(output, sums).
  template <typename N, typename Store>
  TILE_INLINE void run(int64_t channel, N words, int64_t inner0, int64_t inner1, const Store& store) const {
    Pairs weights[kPairs];
    find_weights(weights, channel, words);
    for (int64_t at = 0; at < s_.out[2];) {
      if (at >= inner0 && at + kPixels <= inner1) {
        tile<kPixels>(weights, channel, words, at, store);
        at += kPixels;
      } else {
        tile<1>(weights, channel, words, at, store);
        ++at;
      }
    }
  }

 private:
  template <typename N>
  TILE_INLINE static vec<T, W> load_words(const Element* p, N words) {
    return load_n<W>(reinterpret_cast<const T*>(p), words);
  }

  template <typename N>
  TILE_INLINE void find_weights(Pairs (&weights)[kPairs], int64_t channel, N words) const {
    const auto filter = [&](int64_t line, int64_t pixel) __attribute__((always_inline)) {
      return load_words(op_.filters + ((lo_ + line) * K + pixel) * op_.c + channel, words);
    };
    Pairs* next = weights;
    int64_t line = 0;
    for (; line + 1 < lines_; line += 2) {
      for (int k = 0; k < K; ++k) *next++ = Pairs(filter(line, k), filter(line + 1, k));
    }
    if (line == lines_) return;
    for (int k = 0; k + 1 < K; k += 2) *next++ = Pairs(filter(line, k), filter(line, k + 1));
    if constexpr (K % 2 == 1) *next = Pairs(zero<T, W>(), filter(line, K - 1));  // beside the last pixel but one
  }

  // The number of the weights of the pair that begins with pixel k of a line, or -1 if there is none.
  template <bool InLine>
  static constexpr int pair_of(int k) {
    if (k < 0 || k >= K) return -1;
    if (!InLine) return k;
    return k % 2 == 0 && k + 1 < K ? k / 2 : K % 2 == 1 && k == K - 2 ? K / 2 : -1;
  }

  // Adds the products of pairs that begin at pixel J of the outputs' windows. InLine: pairs of pixels of one line.
  template <bool InLine, int J, int Pixels>
  TILE_INLINE static void add_pairs(const Pairs& pixels, const Pairs* w, vec<T, W> (&acc)[Pixels][2]) {
    static_for<Pixels>([&](auto i) __attribute__((always_inline)) {
      constexpr int pair = pair_of<InLine>(J - int(decltype(i)::value) * S);
      if constexpr (pair >= 0) {
        acc[i][0] = multiply_words<Word>(pixels.low, w[pair].low, acc[i][0]);
        acc[i][1] = multiply_words<Word>(pixels.high, w[pair].high, acc[i][1]);
      }
    });
  }

  // Computes outputs from `at` on. The windows of several outputs are inside the image. Pixels that a single output has
  // outside are 0.
  template <int Pixels, typename N, typename Store>
  TILE_INLINE void tile(const Pairs* w, int64_t channel, N words, int64_t at, const Store& store) const {
    constexpr int kColumns = (Pixels - 1) * S + K;
    const int64_t column = at * S - s_.low[2], row = s_.in[2] * s_.pitch() * s_.dilation[1];
    const auto pixel = [&](const Element* line, int64_t j) __attribute__((always_inline)) {
      if (Pixels == 1 && (column + j < 0 || column + j >= s_.in[2])) return zero<T, W>();
      return load_words(line + j * s_.pitch(), words);
    };
    vec<T, W> acc[Pixels][2];
    static_for<2 * Pixels>([&](auto i) { acc[i / 2][i % 2] = zero<T, W>(); });
    const Element* line = line_ + column * s_.pitch() + channel;
    int64_t left = lines_;
    for (; left >= 2; left -= 2, line += 2 * row, w += K) {
      static_for<kColumns>([&](auto j) __attribute__((always_inline)) {
        add_pairs<false, j>(Pairs(pixel(line, j), pixel(line + row, j)), w, acc);
      });
    }
    if (left > 0) {
      vec<T, W> next = pixel(line, 0);
      static_for<kColumns - 1>([&](auto j) __attribute__((always_inline)) {
        const vec<T, W> first = next;
        next = pixel(line, j + 1);
        add_pairs<true, j>(Pairs(first, next), w, acc);
      });
    }
    static_for<Pixels>([&](auto i) __attribute__((always_inline)) {
      store(at + i, vec<T, 2 * W>{detail::in_order<0>(acc[i][0], acc[i][1], detail::make_indices<W>{}),
                                  detail::in_order<1>(acc[i][0], acc[i][1], detail::make_indices<W>{})});
    });
  }

  const WindowShape& s_;
  const Op& op_;
  const Element* line_;
  int64_t lo_, lines_;
};

}  // namespace heddle::tile
