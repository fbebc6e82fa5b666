// Products of small elements with 32-bit sums. Several neighbouring elements of k are packed into a word of 32 bits,
// and a word is one step of k for micro-kernels: all sizes and strides along k are numbers of words. Words are held as
// numbers of the type of the sums, which have as many bits.
#pragma once

#include "tile/arch/cpu/dot_bfloats.h"
#include "tile/arch/cpu/dot_bytes.h"

namespace heddle::tile {

// Four bytes: unsigned in A, signed in B. The sums are exact, also where instructions for 16-bit sums would saturate.
struct byte_quad {
  using sum = int32_t;
  sum bits;
  using a_element = uint8_t;
  using b_element = int8_t;
  static constexpr int kElements = 4;
};

// Two signed 16-bit numbers, with exact sums.
struct short_pair {
  using sum = int32_t;
  sum bits;
  using a_element = int16_t;
  using b_element = int16_t;
  static constexpr int kElements = 2;
};

// Two bf16 numbers, with sums in f32.
struct bfloat_pair {
  using sum = float;
  sum bits;
  using a_element = bfloat;
  using b_element = bfloat;
  static constexpr int kElements = 2;
};

template <typename T>
inline constexpr bool is_word = is_same<T, byte_quad> || is_same<T, short_pair> || is_same<T, bfloat_pair>;

// Adds the products of the elements of a and b to the sums in c.
template <typename Word, int W>
TILE_INLINE vec<typename Word::sum, W> multiply_words(vec<typename Word::sum, W> a, vec<typename Word::sum, W> b,
                                                      vec<typename Word::sum, W> c) {
  if constexpr (is_same<Word, bfloat_pair>) {
    return add_bfloat_products(a, b, c);
  } else if constexpr (is_same<Word, byte_quad>) {
    return add_byte_products(a, b, c);
  } else {
    return add_short_products(a, b, c);
  }
}

// The bits of elements of B as the low bits of 32-bit lanes. `elements` are in the type in which they are computed, or
// bits in memory.
template <typename Word, typename T, int W>
TILE_INLINE vec<int32_t, W> word_bits(vec<T, W> elements) {
  using Element = typename Word::b_element;
  constexpr int32_t kMask = int32_t((uint64_t{1} << 32 / Word::kElements) - 1);
  if constexpr (is_class<Element> && is_float<T>) {
    return convert<int32_t>(detail::narrow<Element>(elements)) & kMask;
  } else {
    return convert<int32_t>(elements) & kMask;
  }
}

}  // namespace heddle::tile
