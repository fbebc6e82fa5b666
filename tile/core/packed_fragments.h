// The order in which tile/kernel/cuda/gemm/packed.h reads weights of few bits: a 16-byte load of a lane has what it
// multiplies in several steps. A block of 16 rows by 64 of k is the A of four instructions (tile/arch/sm80/mma.h). The
// order of k is free if both operands agree, so lane (g, t) has rows g and g + 8, and k from 16 t on: four neighbours
// for each step. These are 16 pairs of neighbours, and pair P belongs to step P / 4 and word P % 4 of the fragment.
#pragma once

#include "tile/core/config.h"
#include "tile/core/pack.h"

namespace heddle::tile {

inline constexpr int kFragmentRows = 16, kFragmentDepth = 64, kFragmentPairs = 16;

// The words of a lane, and how many of them one load has.
TILE_HD constexpr int fragment_words(int bits) {
  return bits;
}
TILE_HD constexpr int fragment_load(int bits) {
  return bits < 4 ? bits : 4;
}
// The pairs of a word. The first numbers of pairs follow each other from bit 0 on, the second ones from bit 16 on.
TILE_HD constexpr int fragment_pairs(int bits) {
  return 16 / bits;
}

// The words of a matrix [n][k].
constexpr int64_t fragment_matrix_words(int64_t n, int64_t k, int64_t bits) {
  return (n + kFragmentRows - 1) / kFragmentRows * ((k + kFragmentDepth - 1) / kFragmentDepth) * 32 * bits;
}

// Packs a matrix [n][k] whose rows lie in `from` as the op `dequantize` has them (packed_shift()). The padding is 0.
inline void pack_fragments(uint32_t* to, const uint32_t* from, int64_t n, int64_t k, int bits) {
  const int64_t per_word = packed_per_word(bits), pitch = (k + per_word - 1) / per_word;
  const int words = fragment_words(bits), load = fragment_load(bits), pairs = fragment_pairs(bits);
  const uint32_t mask = (uint32_t{1} << bits) - 1;
  for (int64_t row = 0; row < n; row += kFragmentRows) {
    for (int64_t first = 0; first < k; first += kFragmentDepth, to += 32 * words) {
      for (int lane = 0; lane < 32; ++lane) {
        for (int word = 0; word < words; ++word) {
          uint32_t packed = 0;
          for (int i = 0; i < 2 * pairs; ++i) {
            const int pair = word * pairs + i % pairs;
            const int64_t r = row + lane / 4 + pair % 2 * 8;
            const int64_t at = first + lane % 4 * 16 + pair / 4 * 4 + pair / 2 % 2 * 2 + i / pairs;
            if (r >= n || at >= k) continue;
            const uint32_t q = from[r * pitch + at / per_word] >> packed_shift(at % per_word, bits) & mask;
            packed |= q << (i % pairs * bits + i / pairs * 16);
          }
          to[word / load * 32 * load + lane * load + word % load] = packed;
        }
      }
    }
  }
}

// Where the scale of a block lies among those of a matrix of `blocks` blocks a row: rows g and g + 8 are neighbours.
constexpr int64_t fragment_scale_place(int64_t row, int64_t block, int64_t blocks) {
  const int64_t inside = row % kFragmentRows;
  return (row / kFragmentRows * blocks + block) * kFragmentRows + inside % 8 * 2 + inside / 8;
}

}  // namespace heddle::tile
