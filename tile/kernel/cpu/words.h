// Products of small integers with exact 32-bit sums. Several neighbouring elements of k are packed into a word of 32
// bits, and a word is one step of k for micro-kernels: all sizes and strides along k are numbers of words.
#pragma once

#include "tile/arch/cpu/vec.h"

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

namespace detail {

// The lanes' element `at` of B, or of A if it is signed too.
template <typename Word, int W>
TILE_INLINE vec<int32_t, W> signed_element(vec<int32_t, W> words, int at) {
  constexpr int Bits = 32 / Word::kElements;
  return (words << (32 - Bits * (at + 1))) >> (32 - Bits);
}

}  // namespace detail

// Adds the products of the elements of a and b to the sums in c.
template <typename Word, int W>
TILE_INLINE vec<int32_t, W> multiply_words(vec<int32_t, W> a, vec<int32_t, W> b, vec<int32_t, W> c) {
  if constexpr (is_wide<int32_t, W>) {
    return {multiply_words<Word>(a.lo, b.lo, c.lo), multiply_words<Word>(a.hi, b.hi, c.hi)};
#if TILE_AVX512 && defined(__AVX512VNNI__)
  } else if constexpr (is_same<Word, byte_quad> && W == 16) {
    typedef int words __attribute__((vector_size(64)));
#ifdef __clang__
    return {(typename vec<int32_t, 16>::native)__builtin_ia32_vpdpbusd512((words)c.v, (words)a.v, (words)b.v)};
#else
    return {(typename vec<int32_t, 16>::native)__builtin_ia32_vpdpbusd_v16si((words)c.v, (words)a.v, (words)b.v)};
#endif
#endif
#if TILE_AVX512
  } else if constexpr (is_same<Word, short_pair> && W == 16) {
    typedef short shorts __attribute__((vector_size(64)));
#ifdef __clang__
    return vec<int32_t, 16>{(typename vec<int32_t, 16>::native)__builtin_ia32_pmaddwd512((shorts)a.v, (shorts)b.v)} + c;
#else
    typedef int words __attribute__((vector_size(64)));
    return vec<int32_t, 16>{(typename vec<int32_t, 16>::native)__builtin_ia32_pmaddwd512_mask(
               (shorts)a.v, (shorts)b.v, (words)c.v, uint16_t(-1))} +
           c;
#endif
#endif
#if TILE_AVX2
  } else if constexpr (is_same<Word, short_pair> && W == 8) {
    typedef short shorts __attribute__((vector_size(32)));
    return vec<int32_t, 8>{(typename vec<int32_t, 8>::native)__builtin_ia32_pmaddwd256((shorts)a.v, (shorts)b.v)} + c;
#endif
#ifdef __SSE2__
  } else if constexpr (is_same<Word, short_pair> && W == 4) {
    typedef short shorts __attribute__((vector_size(16)));
    return vec<int32_t, 4>{(typename vec<int32_t, 4>::native)__builtin_ia32_pmaddwd128((shorts)a.v, (shorts)b.v)} + c;
#endif
  } else {
    for (int i = 0; i < Word::kElements; ++i) {
      vec<int32_t, W> x = detail::signed_element<Word>(a, i);
      if constexpr (is_same<Word, byte_quad>) x = x & 255;
      c = c + x * detail::signed_element<Word>(b, i);
    }
    return c;
  }
}

}  // namespace heddle::tile
