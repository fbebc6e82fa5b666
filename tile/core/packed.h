// Integers of 2, 4 or 8 bits in words of 32 bits. Both the compiler and the kernels use this code, so it depends on no
// instruction set.
#pragma once

#include <stdint.h>

namespace heddle::tile {

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
  bool rounds = false;          // A is rounded to bytes, with a scale for each block of a row

  constexpr int64_t words(int64_t k) const { return (k + packed_per_word(bits) - 1) / packed_per_word(bits); }
  constexpr int64_t blocks(int64_t k) const { return (k + block - 1) / block; }
  // Bytes of a row of A that is rounded: its bytes, and two numbers for each block.
  constexpr int64_t integer_bytes(int64_t k) const { return (words(k) * packed_per_word(bits) + 63) / 64 * 64; }
  constexpr int64_t factor_bytes(int64_t k) const { return (4 * blocks(k) + 63) / 64 * 64; }
  constexpr int64_t scratch_bytes(int64_t rows, int64_t k) const {
    return rounds ? rows * (integer_bytes(k) + 2 * factor_bytes(k)) : 0;
  }
};

}  // namespace heddle::tile
