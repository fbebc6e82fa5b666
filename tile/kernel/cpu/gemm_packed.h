// C = epilogue(A B) where B has integers of few bits, with a scale for each block along k (ir/ops/packed.cc,
// dequantize). They are widened in registers.
#pragma once

#include "tile/arch/cpu/dot_bytes.h"
#include "tile/arch/cpu/look_up.h"
#include "tile/core/pack.h"
#include "tile/kernel/cpu/gemm.h"

namespace heddle::tile {

// What the third operand of the weights is.
enum class PackedZero { kNone, kBlocks, kTable };

// Weights as panels of `nr` columns: words [panel][word][nr], scales and zero points [panel][block][nr]. S and Z are
// the types in which scales and the third operand are stored. kDigitsA: PackedShape::digits.
template <int kBits, PackedZero kZero, int kDigitsA, typename S, typename Z>
struct PackedWeights {
  const uint32_t* words;
  const S* scales;
  const Z* third;  // kNone: null
  PackedShape shape;
  int32_t zero;  // kNone: the zero point of all blocks

  static constexpr int bits = kBits;
  static constexpr int kDigits = TILE_BYTE_DOT ? kDigitsA : 0;
  static constexpr uint32_t kByteMask = ((1u << kBits) - 1) * 0x01010101u;
  static constexpr PackedZero zero_kind = kZero;
  static constexpr int kPerWord = int(packed_per_word(kBits));
  // The zero point that widening subtracts at no cost.
  static constexpr int kCentre = 1 << (kBits - 1);
  // Products of bytes subtract this from all weights: the common zero point or, if blocks have their own, the centre of
  // the range.
  int32_t common_zero() const { return kZero == PackedZero::kNone ? zero : kCentre; }
  // Registers that hold the table, or kCentre subtracted from each integer.
  static constexpr bool kLooksUp = kZero == PackedZero::kTable || (TILE_AVX512 && kBits == 4);

  // B as a form of gemm(): widens a panel to scratch.
  using element = float;
  static constexpr bool kCopies = true;
  const float* panel(const GemmShape& s, int64_t, int64_t panel, int64_t nr, Steps steps, float* scratch,
                     int64_t& stride) const;
};

namespace detail {

// The integers of vectors of words, and the scales of a block. W columns.
template <typename B>
class Widener {
 public:
  static constexpr int W = kLanes;
  using V = vec<float, W>;
  using I = vec<int32_t, W>;

  TILE_INLINE explicit Widener(const B& b) {
    if constexpr (B::kLooksUp) {
      static_for<kVectors * W>([&](auto i) {
        constexpr int entry = i % kEntries;
        if constexpr (B::zero_kind == PackedZero::kTable) {
          table_[i / W].set(i % W, b.third[entry]);
        } else {
          table_[i / W].set(i % W, float(entry - B::kCentre));
        }
      });
    }
  }

  TILE_INLINE static I words(const uint32_t* from) { return bit_cast<int32_t>(load<W>(from)); }

  // Integer i of each word, minus kCentre, or its entry in the table.
  template <int i>
  TILE_INLINE V value(I words) const {
    constexpr int shift = int(packed_shift(i, B::bits));
    if constexpr (B::kLooksUp) {
      return look_up(table_, words >> shift);
    } else {
      const I centred = words ^ splat<W>(centres());
      return convert<float>((centred << (32 - B::bits - shift)) >> (32 - B::bits));
    }
  }

 private:
  static constexpr int kEntries = 1 << B::bits, kVectors = B::kLooksUp && kEntries > W ? kEntries / W : 1;

  static constexpr int32_t centres() {
    uint32_t all = 0;
    for (int i = 0; i < B::kPerWord; ++i) all |= uint32_t(B::kCentre) << i * B::bits;
    return int32_t(all);
  }
  V table_[kVectors];
};

// Scales and zero points of one block for one vector of columns.
template <typename B>
struct BlockScale {
  static constexpr int W = kLanes;
  vec<float, W> scale;
  vec<float, W> shift;  // what an integer of 0 after widening stands for

  TILE_INLINE BlockScale(const B& b, int64_t at) : scale(load<W>(b.scales + at)), shift(zero<float, W>()) {
    if constexpr (B::zero_kind == PackedZero::kNone) {
      shift = scale * float(B::kCentre - b.zero);
    } else if constexpr (B::zero_kind == PackedZero::kBlocks) {
      shift = scale * (float(B::kCentre) - convert<float>(load<W>(b.third + at)));
    }
  }
};

}  // namespace detail

template <int kBits, PackedZero kZero, int kDigitsA, typename S, typename Z>
const float* PackedWeights<kBits, kZero, kDigitsA, S, Z>::panel(const GemmShape& s, int64_t, int64_t panel, int64_t nr,
                                                                Steps steps, float* scratch, int64_t& stride) const {
  constexpr int W = kLanes;
  stride = nr;
  const int64_t rows = shape.words(s.k), blocks = shape.blocks(s.k);
  const detail::Widener<PackedWeights> widener(*this);
  const int64_t end = steps.first + steps.count;
  for (int64_t j = 0; j < nr; j += W) {
    for (int64_t k = steps.first; k < end;) {
      const int64_t block = k / shape.block, limit = (block + 1) * shape.block < end ? (block + 1) * shape.block : end;
      const detail::BlockScale<PackedWeights> at(*this, (panel * blocks + block) * nr + j);
      for (; k < limit; k += kPerWord) {
        const auto v = widener.words(words + (panel * rows + k / kPerWord) * nr + j);
        float* out = scratch + (k - steps.first) * nr + j;
        const int64_t left = limit - k;
        static_for<kPerWord>([&](auto i) __attribute__((always_inline)) {
          if (i < left) store(out + i * nr, fma(widener.template value<i>(v), at.scale, at.shift));
        });
      }
      k = limit;
    }
  }
  return scratch;
}

namespace detail {

// A panel of the weights at one of its columns.
struct PackedPanel {
  int64_t words, scales;  // positions of the first word and the first scale
  int64_t nr;             // distance between words
};

// c[MR][NV * W] = A B for MR rows and one panel, in f32. c has rows of `nr` columns.
// If kCentred, an integer of 0 after widening stands for 0. With few rows, its scale is then applied to the sum of a
// block; with more, to the integers.
template <int MR, int NV, bool kCentred, typename B>
__attribute__((noinline)) void multiply_packed(const B& b, const PackedPanel& at, const float* a, int64_t a_stride,
                                               int64_t k, float* c) {
  constexpr int W = kLanes, P = B::kPerWord;
  constexpr bool kScalesSums = kCentred && MR <= 2;
  using V = vec<float, W>;
  const Widener<B> widener(b);
  V acc[MR][NV];
  static_for<MR * NV>([&](auto i) __attribute__((always_inline)) { acc[i / NV][i % NV] = zero<float, W>(); });
  const uint32_t* words = b.words + at.words;
  int64_t scales = at.scales;
  for (int64_t left = k; left > 0; left -= b.shape.block, scales += at.nr) {
    int64_t count = left < b.shape.block ? left : b.shape.block;
    V scale[NV], shift[NV], inner[MR][NV];
    static_for<NV>([&](auto j) __attribute__((always_inline)) {
      const BlockScale<B> block(b, scales + j * W);
      scale[j] = block.scale, shift[j] = block.shift;
    });
    if constexpr (kScalesSums)
      static_for<MR * NV>([&](auto i) __attribute__((always_inline)) { inner[i / NV][i % NV] = zero<float, W>(); });
    const auto step = [&](auto i, const auto& v) __attribute__((always_inline)) {
      V w[NV];
      static_for<NV>([&](auto j) __attribute__((always_inline)) {
        w[j] = widener.template value<i>(v[j]);
        if constexpr (!kScalesSums) w[j] = kCentred ? w[j] * scale[j] : fma(w[j], scale[j], shift[j]);
      });
      static_for<MR>([&](auto r) __attribute__((always_inline)) {
        const V x = splat<W>(a[r * a_stride + i]);
        static_for<NV>([&](auto j) __attribute__((always_inline)) {
          V& sum = kScalesSums ? inner[r][j] : acc[r][j];
          sum = fma(x, w[j], sum);
        });
      });
    };
    for (; count > 0; count -= P, a += P, words += at.nr) {
      vec<int32_t, W> v[NV];
      static_for<NV>([&](auto j) __attribute__((always_inline)) { v[j] = Widener<B>::words(words + j * W); });
      if (count >= P) {
        static_for<P>([&](auto i) __attribute__((always_inline)) { step(i, v); });
      } else {
        static_for<P - 1>([&](auto i) __attribute__((always_inline)) {
          if (i < count) step(i, v);
        });
      }
    }
    if constexpr (kScalesSums) {
      static_for<MR * NV>([&](auto i) __attribute__((always_inline)) {
        acc[i / NV][i % NV] = fma(inner[i / NV][i % NV], scale[i % NV], acc[i / NV][i % NV]);
      });
    }
  }
  static_for<MR * NV>([&](auto i) __attribute__((always_inline)) {
    store(c + i / NV * at.nr + i % NV * W, acc[i / NV][i % NV]);
  });
}

#if TILE_BYTE_DOT

// The digits are base 256 and range from -128 to 127. The largest integer is this number, or one more if the scale was
// rounded down.
template <int kDigits>
inline constexpr float kMostRounded = kDigits == 1 ? 127 : 0x7f7f00;

// Rows of A as integers, with a scale for each block. The arrays hold the rows one after another. A row has kDigits
// lines of `pitch` bytes, the most significant digits first. For each of its `blocks` blocks it has a scale, a sum, and
// kDigits start values.
template <int kDigits>
struct ByteRows {
  int8_t* bytes;
  float* factors;
  float* sums;
  int32_t* starts;    // initial sums of products: the sums of digits times -common_zero()
  bool* are_regular;  // by row: the scales of all blocks are normal numbers
  int64_t pitch, blocks;

  const int8_t* row(int64_t i) const { return bytes + i * kDigits * pitch; }

  template <typename B>
  TILE_INLINE void round(const B& b, int64_t k, int64_t row, const float* a) const {
    int64_t block = row * blocks;
    int8_t* to = bytes + row * kDigits * pitch;
    bool regular = true;
    for (int64_t first = 0; first < k; first += b.shape.block, ++block) {
      const int64_t count = k - first < b.shape.block ? k - first : b.shape.block;
      int32_t digits[kDigits];
      factors[block] = round_block(a + first, count, to + first, digits);
      regular = regular && is_regular(factors[block]);
      float sum = 0;
      for (int d = 0; d < kDigits; ++d) {
        starts[block * kDigits + d] = -b.common_zero() * digits[d];
        sum = sum * 256.0f + float(digits[d]);
      }
      sums[block] = factors[block] * sum;
    }
    for (int d = 0; d < kDigits; ++d) {
      for (int64_t i = k; i < pitch; ++i) to[d * pitch + i] = 0;
    }
    are_regular[row] = regular;
  }

 private:
  // True if the factor and its inverse are normal numbers, and for a block of zeros.
  static bool is_regular(float factor) { return factor == 0.0f || (factor > 0x1p-100f && factor < 0x1p100f); }

  // Returns the scale. It is not regular if the block has infinities or NaN.
  TILE_INLINE float round_block(const float* a, int64_t count, int8_t* to, int32_t* digit_sums) const {
    constexpr int W = kLanes;
    vec<int32_t, W> most = zero<int32_t, W>();  // bits of magnitudes, which have the same order
    const auto at = [&](int64_t i) { return count - i < W ? load_n<W>(a + i, count - i) : load<W>(a + i); };
    for (int64_t i = 0; i < count; i += W) most = max(most, bit_cast<int32_t>(abs(at(i))));
    const float largest = __builtin_bit_cast(float, reduce_max(most)), factor = largest / kMostRounded<kDigits>;
    const float inverse = factor != 0.0f && is_regular(factor) ? kMostRounded<kDigits> / largest : 0.0f;
    vec<int32_t, W> sums[kDigits];
    for (int d = 0; d < kDigits; ++d) sums[d] = zero<int32_t, W>();
    for (int64_t i = 0; i < count; i += W) {
      auto q = round_to_int(at(i) * inverse);
      static_for<kDigits>([&](auto least) __attribute__((always_inline)) {
        constexpr int d = kDigits - 1 - least;
        const auto digit = (q << 24) >> 24;
        q = (q - digit) >> 8;
        sums[d] = sums[d] + digit;
        if (count - i < W) {
          store_n(to + d * pitch + i, convert<int8_t>(digit), count - i);
        } else {
          store(to + d * pitch + i, convert<int8_t>(digit));
        }
      });
    }
    for (int d = 0; d < kDigits; ++d) digit_sums[d] = reduce_add(sums[d]);
    return factor;
  }
};

// The same as multiply_packed(), for rows `row` to row + MR - 1 of `a`. The products of a block are summed as integers.
template <int MR, int NV, typename B>
__attribute__((noinline)) void multiply_bytes(const B& b, const PackedPanel& at, const ByteRows<B::kDigits>& a,
                                              int64_t row, int64_t k, float* c) {
  constexpr int W = kLanes, P = B::kPerWord, Parts = P / 4, D = B::kDigits;
  using V = vec<float, W>;
  using I = vec<int32_t, W>;
  V acc[MR][NV];
  static_for<MR * NV>([&](auto i) __attribute__((always_inline)) { acc[i / NV][i % NV] = zero<float, W>(); });
  const uint32_t* words = b.words + at.words;
  const int8_t* bytes = a.row(row);
  int64_t scales = at.scales, block = row * a.blocks;
  for (int64_t left = k; left > 0; left -= b.shape.block, scales += at.nr, ++block) {
    const int64_t count = left < b.shape.block ? left : b.shape.block;
    ByteDot<B::bits> dots[MR * D][NV];
    static_for<MR * D * NV>([&](auto i) __attribute__((always_inline)) {
      constexpr int r = i / NV / D, d = i / NV % D;
      dots[i / NV][i % NV].start(splat<W>(a.starts[(block + r * a.blocks) * D + d]));
    });
    constexpr int64_t kTogether = ByteDot<B::bits>::kSteps / Parts;
    for (int64_t rest = (count + P - 1) / P; rest > 0; rest -= kTogether) {
      for (int64_t w = 0; w < rest && w < kTogether; ++w, words += at.nr, bytes += P) {
        I v[NV];
        static_for<NV>([&](auto j)
                           __attribute__((always_inline)) { v[j] = bit_cast<int32_t>(load<W>(words + j * W)); });
        static_for<Parts>([&](auto part) __attribute__((always_inline)) {
          I u[NV];
          static_for<NV>([&](auto j) __attribute__((always_inline)) {
            u[j] = B::bits == 8 ? v[j] : (v[j] >> part * B::bits) & int32_t(B::kByteMask);
          });
          static_for<MR * D>([&](auto r) __attribute__((always_inline)) {
            int32_t four;
            __builtin_memcpy(&four, bytes + r * a.pitch + 4 * part, 4);
            static_for<NV>([&](auto j) __attribute__((always_inline)) { dots[r][j].add(u[j], splat<W>(four)); });
          });
        });
      }
      static_for<MR * D * NV>([&](auto i) __attribute__((always_inline)) { dots[i / NV][i % NV].finish(); });
    }
    static_for<NV>([&](auto j) __attribute__((always_inline)) {
      const BlockScale<B> of_block(b, scales + j * W);
      static_for<MR>([&](auto r) __attribute__((always_inline)) {
        V sum = convert<float>(dots[r * D][j].sum());
        static_for<D - 1>([&](auto d) __attribute__((always_inline)) {
          sum = fma(sum, splat<W>(256.0f), convert<float>(dots[r * D + d + 1][j].sum()));
        });
        acc[r][j] = fma(sum, of_block.scale * a.factors[block + r * a.blocks], acc[r][j]);
        if constexpr (B::zero_kind == PackedZero::kBlocks) {
          acc[r][j] = fma(of_block.shift, splat<W>(a.sums[block + r * a.blocks]), acc[r][j]);
        }
      });
    });
  }
  static_for<MR * NV>([&](auto i) __attribute__((always_inline)) {
    store(c + i / NV * at.nr + i % NV * W, acc[i / NV][i % NV]);
  });
}

#endif

// Vectors of columns that one call computes: as many as fit the registers beside MR rows of sums.
template <int MR, int NV>
inline constexpr int kPackedVectors = TILE_AVX512 ? (MR <= 4 ? NV : 1) : (MR <= 1 ? NV : 1);

// One micro tile of `MR` rows from row `row` of the block on.
template <int MR, int NV, typename B>
TILE_INLINE void packed_tile(const B& b, int64_t panel, const float* a, int64_t a_stride,
                             [[maybe_unused]] const void* rounded, int64_t row, int64_t k, float* c) {
  constexpr int N = kPackedVectors<MR, NV>;
  constexpr int64_t nr = kPanel<float, NV>;
  const auto place = [&](int64_t j) {
    return PackedPanel{panel * b.shape.words(k) * nr + j, panel * b.shape.blocks(k) * nr + j, nr};
  };
  a += row * a_stride;
#if TILE_BYTE_DOT
  if constexpr (B::kDigits > 0) {
    const auto& rows = *static_cast<const ByteRows<B::kDigits>*>(rounded);
    bool regular = true;
    for (int i = 0; i < MR; ++i) regular = regular && rows.are_regular[row + i];
    if (regular) {
      for (int64_t j = 0; j < nr; j += N * kLanes) multiply_bytes<MR, N>(b, place(j), rows, row, k, c + j);
      return;
    }
    // This is rare, so one small loop is enough.
    for (int i = 0; i < MR; ++i) {
      for (int64_t j = 0; j < nr; j += kLanes) {
        multiply_packed<1, 1, false>(b, place(j), a + i * a_stride, a_stride, k, c + i * nr + j);
      }
    }
    return;
  }
#endif
  for (int64_t j = 0; j < nr; j += N * kLanes) {
    if (B::zero_kind == PackedZero::kTable || (B::zero_kind == PackedZero::kNone && b.zero == B::kCentre)) {
      multiply_packed<MR, N, true>(b, place(j), a, a_stride, k, c + j);
    } else if constexpr (B::zero_kind != PackedZero::kTable) {
      multiply_packed<MR, N, false>(b, place(j), a, a_stride, k, c + j);
    }
  }
}

}  // namespace detail

// Runs tasks [begin, end) of s.tasks(kPanel<float, NV>) in micro tiles of MR rows and MR - 1 rows. Scratch: that of
// gemm() for operands that are not B, and after it b.shape.scratch_bytes() for the rows of a task.
template <int MR, int NV, typename A, typename B, typename Epilogue>
void gemm_packed(const GemmShape& s, const A& a, const B& b, const Epilogue& epilogue, void* scratch, int64_t begin,
                 int64_t end) {
  constexpr int64_t nr = kPanel<float, NV>;
  const int64_t m_blocks = s.m_blocks(), n_blocks = s.n_blocks(nr), panels = panel_count(s.n, nr);
  float* const c = static_cast<float*>(scratch);
  float* const a_scratch = c + s.accumulator_elements(MR, nr);
  const float* rows = nullptr;
  int64_t stride = 0, ready = -1, first = 0, tiles = 0, tall = 0;
#if TILE_BYTE_DOT
  constexpr int D = B::kDigits > 0 ? B::kDigits : 1;
  detail::ByteRows<D> rounded{};
  if constexpr (B::kDigits > 0) {
    const int64_t most = (s.block_tiles < s.tiles ? s.block_tiles : s.tiles) * MR;
    rounded.pitch = b.shape.integer_bytes(s.k), rounded.blocks = b.shape.blocks(s.k);
    rounded.bytes = reinterpret_cast<int8_t*>(a_scratch + (A::kCopies ? s.block_elements(MR, sizeof(float)) : 0));
    rounded.factors = reinterpret_cast<float*>(rounded.bytes + most * D * rounded.pitch);
    rounded.sums = rounded.factors + most * rounded.blocks;
    rounded.starts = reinterpret_cast<int32_t*>(rounded.sums + most * rounded.blocks);
    rounded.are_regular = reinterpret_cast<bool*>(rounded.starts + most * D * rounded.blocks);
  }
  const void* const bytes = &rounded;
#else
  const void* const bytes = nullptr;
#endif
  for (int64_t task = begin; task < end; ++task) {
    const int64_t block = task / n_blocks, batch = block / m_blocks;
    if (ready != block) {  // tasks of one block are consecutive, so its rows of A are prepared once
      const int64_t tile0 = block % m_blocks * s.block_tiles;
      const int64_t tile1 = tile0 + s.block_tiles < s.tiles ? tile0 + s.block_tiles : s.tiles;
      first = s.tile_row(tile0, MR), tiles = tile1 - tile0, tall = s.tall - tile0;
      const int64_t count = s.tile_row(tile1, MR) - first;
      rows = a.prepare(s, batch, first, count, {0, s.k}, a_scratch, stride);
#if TILE_BYTE_DOT
      if constexpr (B::kDigits > 0) {
        for (int64_t row = 0; row < count; ++row) rounded.round(b, s.k, row, rows + row * stride);
      }
#endif
      ready = block;
    }
    const int64_t panel0 = task % n_blocks * s.block_panels;
    const int64_t panel1 = panel0 + s.block_panels < panels ? panel0 + s.block_panels : panels;
    for (int64_t panel = panel0; panel < panel1; ++panel) {
      int64_t row = 0;
      for (int64_t tile = 0; tile < tiles; ++tile) {
        int64_t made = MR;
        if (tile < tall) {
          detail::packed_tile<MR, NV>(b, panel, rows, stride, bytes, row, s.k, c);
        } else if constexpr (MR > 1) {
          made = MR - 1;
          detail::packed_tile<MR - 1, NV>(b, panel, rows, stride, bytes, row, s.k, c);
        }
        if constexpr (detail::kAlongRows<Epilogue>) {
          detail::finish_along_rows<float, NV>(c, made, first + row, batch, panel * nr, s.n - panel * nr, epilogue);
        } else {
          detail::finish_tile<float, NV>(c, made, first + row, batch, panel * nr, s.n - panel * nr, epilogue);
        }
        row += made;
      }
    }
  }
}

}  // namespace heddle::tile
