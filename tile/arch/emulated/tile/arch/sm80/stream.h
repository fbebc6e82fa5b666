// The emulator's replacement for tile/arch/sm80/stream.h.
#pragma once

namespace heddle::tile::sm80 {

template <typename T>
inline T load_or_zero(const T* p, bool wanted) {
  T x{};
  if (wanted) x = *p;
  return x;
}

template <typename T>
inline T load_stream(const T* p) {
  static_assert(sizeof(T) == 16 && alignof(T) == 16);
  return *p;
}

template <bool Once, typename T>
inline void load_weights_if(T& to, const T* p, bool wanted) {
  if (wanted) to = *p;
}

inline void prefetch(const void*) {}

template <typename T>
inline T load_here(const T* p) {
  static_assert(sizeof(T) == 16 && alignof(T) == 16);
  return *p;
}

template <int N>
inline void store_words(void* p, const uint32_t (&words)[N]) {
  static_assert(N == 2 || N == 4);
  struct alignas(4 * N) Words {
    uint32_t x[N];
  };
  *static_cast<Words*>(p) = __builtin_bit_cast(Words, words);
}

template <int N>
inline void launder(uint32_t (&)[N]) {}

}  // namespace heddle::tile::sm80
