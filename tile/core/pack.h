// Packs a weight matrix into the panels that micro-kernels stream, and integers of few bits into words. Both the
// compiler and the kernels use this code, so it depends on no instruction set.
#pragma once

#include <stdint.h>

#include "tile/core/config.h"

namespace heddle::tile {

// The matrix B[K][N] of each group. Strides are in elements and may have any value. K = outer * inner (the taps and
// input channels of a filter). `outer` and `inner` have separate strides. Each output channel may have `phases`
// columns. A panel then contains one phase of several output channels. The panels with the other phases of the same
// channels follow it.
struct PanelSource {
  int64_t groups = 1, group_stride = 0;
  int64_t outer = 1, outer_stride = 0;
  int64_t inner = 0, inner_stride = 0;
  int64_t n = 0, n_stride = 0;
  int64_t phases = 1;
};

constexpr int64_t panel_count(int64_t n, int64_t width) {
  return (n + width - 1) / width;
}

constexpr int64_t panel_count(const PanelSource& s, int64_t width) {
  return s.phases * panel_count(s.n / s.phases, width);
}

// Returns the number of elements of the packed form.
constexpr int64_t packed_elements(const PanelSource& s, int64_t width) {
  return s.groups * panel_count(s, width) * width * s.outer * s.inner;
}

// The inner dimension is packed in pieces of this many indices. All outer indices of a piece are packed before the next
// piece, because elements with the same inner index share cache lines. For filters of 1280x1280x3x3, this cuts the
// packing time to 0.6 of the time without pieces.
inline constexpr int64_t kPackedTogether = 64;

// Writes panel `panel` of `group` as [K][width]. Columns beyond the last one are zero.
template <typename Dst, typename Src, typename Convert>
inline void pack_panel(Dst* dst, const Src* src, const PanelSource& s, int64_t width, int64_t group, int64_t panel,
                       Convert convert) {
  const int64_t first = panel / s.phases * width, left = s.n / s.phases - first, step = s.phases * s.n_stride;
  const int64_t columns = left < width ? left : width;
  const Src* from = src + group * s.group_stride + first * step + panel % s.phases * s.n_stride;
  const int64_t together = s.outer == 1 ? s.inner : kPackedTogether;
  for (int64_t i0 = 0; i0 < s.inner; i0 += together) {
    const int64_t i1 = i0 + together < s.inner ? i0 + together : s.inner;
    for (int64_t o = 0; o < s.outer; ++o) {
      for (int64_t i = i0; i < i1; ++i) {
        const Src* row = from + o * s.outer_stride + i * s.inner_stride;
        Dst* out = dst + (o * s.inner + i) * width;
        for (int64_t j = 0; j < columns; ++j) out[j] = convert(row[j * step]);
        for (int64_t j = columns; j < width; ++j) out[j] = Dst{};
      }
    }
  }
}

// Packs the whole operand as [group][panel][K][width].
template <typename Dst, typename Src, typename Convert>
inline void pack_panels(Dst* dst, const Src* src, const PanelSource& s, int64_t width, Convert convert) {
  const int64_t panels = panel_count(s, width);
  for (int64_t g = 0; g < s.groups; ++g) {
    for (int64_t p = 0; p < panels; ++p) {
      pack_panel(dst, src, s, width, g, p, convert);
      dst += s.outer * s.inner * width;
    }
  }
}

// Packs the whole operand as [group][panel][K][width] of words (kernel/cpu/words.h) with `count` elements of type
// Element each. A word has neighbouring inner indices of one column. The inner dimension is filled with zeros to whole
// words, so K = outer * ceil(inner / count).
template <typename Element, typename Src>
inline void pack_words(Element* dst, const Src* src, const PanelSource& s, int64_t width, int64_t count) {
  const int64_t panels = panel_count(s, width), step = s.phases * s.n_stride;
  for (int64_t p = 0; p < s.groups * panels; ++p) {
    const int64_t panel = p % panels, first = panel / s.phases * width;
    const Src* from = src + p / panels * s.group_stride + first * step + panel % s.phases * s.n_stride;
    for (int64_t o = 0; o < s.outer; ++o) {
      for (int64_t i = 0; i < s.inner; i += count) {
        for (int64_t j = 0; j < width; ++j) {
          for (int64_t e = 0; e < count; ++e) {
            const bool is_one = first + j < s.n / s.phases && i + e < s.inner;
            const Src* at = from + o * s.outer_stride + (i + e) * s.inner_stride + j * step;
            *dst++ = is_one ? static_cast<Element>(*at) : Element{};
          }
        }
      }
    }
  }
}

// ---- Integers of 2, 4 or 8 bits in words of 32 bits.

// The number of integers in a word.
constexpr int64_t packed_per_word(int64_t bits) {
  return 32 / bits;
}

// The position of integer `k` of a word, in bits. Four consecutive integers are in four bytes, so one shift and one
// mask of a word give the operand of an instruction that multiplies and adds four bytes.
constexpr int64_t packed_shift(int64_t k, int64_t bits) {
  return 8 * (k % 4) + bits * (k / 4);
}

// How gemm_packed() reads the packed operand, and its scratch memory.
struct PackedShape {
  int64_t bits = 0, block = 0;  // `block` neighbours along k share a scale: all of k, or a multiple of a word
  // The number of 8-bit digits of the integers to which A is rounded, with a scale for each block of a row. 0: A stays
  // in floats.
  int digits = 0;

  constexpr int64_t words(int64_t k) const { return (k + packed_per_word(bits) - 1) / packed_per_word(bits); }
  constexpr int64_t blocks(int64_t k) const { return (k + block - 1) / block; }
  // Bytes of a row for one of its digits.
  constexpr int64_t integer_bytes(int64_t k) const { return (words(k) * packed_per_word(bits) + 63) / 64 * 64; }
  // Each block has a scale, a sum and a sum for each digit. Each row has a flag.
  constexpr int64_t scratch_bytes(int64_t rows, int64_t k) const {
    return digits == 0 ? 0 : rows * (digits * integer_bytes(k) + 4 * (2 + digits) * blocks(k) + 1);
  }
};

// ---- Integers of few bits in the order in which tile/kernel/cuda/gemm/packed.h reads them.

// One 16-byte load gives a lane its operands for several steps. A block of 16 rows and 64 columns (along k) is the A of
// four instructions (tile/arch/sm80/mma.h). The order of k is free if both operands agree on it. Lane (g, t) therefore
// has 16 neighbouring columns from 16 t on, in rows g and g + 8. Four of them belong to each step. These are 16 pairs
// of neighbours; pair P belongs to step P / 4 and is register P % 4 of that step's A.
inline constexpr int kFragmentRows = 16, kFragmentDepth = 64, kFragmentPairs = 16;

// The words of a lane, and the words of one load.
TILE_HD constexpr int fragment_words(int bits) {
  return bits;
}
TILE_HD constexpr int fragment_load(int bits) {
  return bits < 4 ? bits : 4;
}
// The pairs in a word. The first integers of the pairs are packed from bit 0 up, the second ones from bit 16 up.
TILE_HD constexpr int fragment_pairs(int bits) {
  return 16 / bits;
}

// The words of a matrix [n][k].
constexpr int64_t fragment_matrix_words(int64_t n, int64_t k, int64_t bits) {
  return (n + kFragmentRows - 1) / kFragmentRows * ((k + kFragmentDepth - 1) / kFragmentDepth) * 32 * bits;
}

// The two words of a lane that hold the integers of one word of a row, `upper`, and of the row 8 below it, `lower`.
template <int kBits>
inline void fragment_pair(uint32_t upper, uint32_t lower, uint32_t& first, uint32_t& second) {
  if constexpr (kBits == 8) {
    const auto joined = [](uint32_t a, uint32_t b) {
      return (a & 0xff) | (b & 0xff) << 8 | (a & 0xff00) << 8 | (b & 0xff00) << 16;
    };
    first = joined(upper, lower), second = joined(upper >> 16, lower >> 16);
  } else if constexpr (kBits == 4) {
    const auto joined = [](uint32_t a, uint32_t b) {
      const uint32_t pairs = (a & 0x0f0f0f0f) | (b & 0x0f0f0f0f) << 4;
      return (pairs & 0xff0000ff) | (pairs >> 8 & 0xff00) | (pairs << 8 & 0xff0000);
    };
    first = joined(upper, lower), second = joined(upper >> 4, lower >> 4);
  } else {
    static_assert(kBits == 2);
    const auto joined = [](uint32_t a, uint32_t b) {
      const uint32_t pairs = (a & 0x03030303) | (b & 0x03030303) << 2;
      return (pairs & 0xf) | (pairs >> 12 & 0xf0) | (pairs << 8 & 0xf0000) | (pairs >> 4 & 0xf00000);
    };
    first = joined(upper, lower) | joined(upper >> 2, lower >> 2) << 8;
    second = joined(upper >> 4, lower >> 4) | joined(upper >> 6, lower >> 6) << 8;
  }
}

// Packs the blocks of 16 rows from `begin` to `end` of a matrix [n][k] into `to`, which is the whole packed matrix.
// `from` is in the layout of the op `dequantize` (packed_shift()). The padding is 0.
template <int kBits>
void pack_fragments(uint32_t* to, const uint32_t* from, int64_t n, int64_t k, int64_t begin, int64_t end) {
  constexpr int kPerWord = static_cast<int>(packed_per_word(kBits)), kWords = kFragmentDepth / kPerWord;
  constexpr int kOfLane = kBits / 2, kLoad = fragment_load(kBits);
  const int64_t pitch = (k + kPerWord - 1) / kPerWord, steps = (k + kFragmentDepth - 1) / kFragmentDepth;
  to += begin * steps * 32 * kBits;
  for (int64_t block = begin; block < end; ++block) {
    for (int64_t step = 0; step < steps; ++step, to += 32 * kBits) {
      uint32_t rows[kFragmentRows][kWords];
      const int64_t first = step * kWords, present = pitch - first < kWords ? pitch - first : kWords;
      for (int r = 0; r < kFragmentRows; ++r) {
        const int64_t row = block * kFragmentRows + r;
        const bool is_whole = row < n && present == kWords;
        for (int i = 0; i < kWords; ++i) {
          rows[r][i] = is_whole || (row < n && i < present) ? from[row * pitch + first + i] : 0;
        }
      }
      if (const int64_t last = k - step * kFragmentDepth; last < kFragmentDepth && last % kPerWord != 0) {
        uint32_t inside = 0;
        for (int64_t i = 0; i < last % kPerWord; ++i) inside |= ((uint32_t{1} << kBits) - 1) << packed_shift(i, kBits);
        for (auto& row : rows) row[last / kPerWord] &= inside;
      }
      for (int g = 0; g < 8; ++g) {
        for (int i = 0; i < kWords; ++i) {
          const int lane = 4 * g + i / kOfLane, word = 2 * (i % kOfLane);
          uint32_t* const out = to + word / kLoad * 32 * kLoad + lane * kLoad + word % kLoad;
          fragment_pair<kBits>(rows[g][i], rows[g + 8][i], out[0], out[1]);
        }
      }
    }
  }
}

// The index of a block's scale in a matrix with `blocks` blocks a row. The scales of rows g and g + 8 are neighbours.
constexpr int64_t fragment_scale_place(int64_t row, int64_t block, int64_t blocks) {
  const int64_t inside = row % kFragmentRows;
  return (row / kFragmentRows * blocks + block) * kFragmentRows + inside % 8 * 2 + inside / 8;
}

}  // namespace heddle::tile
