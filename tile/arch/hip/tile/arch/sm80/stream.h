// The loads and stores of tile/arch/sm80/stream.h for AMD GPUs.
#pragma once

#include "tile/core/types.h"

namespace heddle::tile::sm80 {

typedef uint32_t words_of_access __attribute__((ext_vector_type(4)));

// The caches keep nothing of a non-temporal load longer than they must.
template <typename T>
__device__ inline T load_stream(const T* p) {
  static_assert(sizeof(T) == 16 && alignof(T) == 16);
  return __builtin_bit_cast(T, __builtin_nontemporal_load((__attribute__((address_space(1))) const words_of_access*)p));
}
// As words: the compiler keeps a conditional copy of a structure of halves in memory.
template <typename T>
__device__ inline T load_or_zero(const T* p, bool wanted) {
  if constexpr (sizeof(T) < 4) {
    uint_t<sizeof(T)> word = 0;
    if (wanted) word = *reinterpret_cast<const uint_t<sizeof(T)>*>(p);
    return __builtin_bit_cast(T, word);
  } else {
    typedef uint32_t Words __attribute__((ext_vector_type(sizeof(T) / 4)));
    Words words = {};
    if (wanted) words = *(__attribute__((address_space(1))) const Words*)p;
    return __builtin_bit_cast(T, words);
  }
}
template <bool Once, typename T>
__device__ inline void load_weights_if(T& to, const T* p, bool wanted) {
  static_assert((sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16) && alignof(T) == sizeof(T));
  typedef uint32_t Words __attribute__((ext_vector_type(sizeof(T) / 4)));
  if (wanted) to = __builtin_bit_cast(T, __builtin_nontemporal_load((__attribute__((address_space(1))) const Words*)p));
}
template <typename T>
__device__ inline T load_here(const T* p) {
  static_assert(sizeof(T) == 16 && alignof(T) == 16);
  const void* q = p;
  asm volatile("" : "+v"(q));
  return __builtin_bit_cast(T, *(__attribute__((address_space(1))) const words_of_access*)q);
}
// A load that nothing waits for.
__device__ inline void prefetch(const void* p) {
  const uint32_t word = *(__attribute__((address_space(1))) const uint8_t*)p;
  asm volatile("" ::"v"(word));
}
template <int N>
__device__ inline void store_words(void* p, const uint32_t (&words)[N]) {
  static_assert(N == 2 || N == 4);
  typedef uint32_t Words __attribute__((ext_vector_type(N)));
  Words all;
#pragma unroll
  for (int i = 0; i < N; ++i) all[i] = words[i];
  *(__attribute__((address_space(1))) Words*)p = all;
}
template <int N>
__device__ inline void launder(uint32_t (&words)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+v"(words[i]));
}

}  // namespace heddle::tile::sm80
