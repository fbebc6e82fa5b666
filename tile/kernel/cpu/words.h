// Products of small integers with exact 32-bit sums. Several neighbouring elements of k are packed into a word of 32
// bits, and a word is one step of k for micro-kernels: all sizes and strides along k are numbers of words.
#pragma once

#include "tile/arch/cpu/dot_bytes.h"

namespace heddle::tile {

// Four bytes: unsigned in A, signed in B. The sums are exact, also where instructions for 16-bit sums would saturate.
struct byte_quad {
  int32_t bits;
  using a_element = uint8_t;
  using b_element = int8_t;
  static constexpr int kElements = 4;
};

// Two signed 16-bit numbers.
struct short_pair {
  int32_t bits;
  using a_element = int16_t;
  using b_element = int16_t;
  static constexpr int kElements = 2;
};

template <typename T>
inline constexpr bool is_word = is_same<T, byte_quad> || is_same<T, short_pair>;

// Adds the products of the elements of a and b to the sums in c.
template <typename Word, int W>
TILE_INLINE vec<int32_t, W> multiply_words(vec<int32_t, W> a, vec<int32_t, W> b, vec<int32_t, W> c) {
  return is_same<Word, byte_quad> ? add_byte_products(a, b, c) : add_short_products(a, b, c);
}

}  // namespace heddle::tile
