// Loads of data that is read once, loads of data that is read repeatedly, and wide stores. Only load_weights_if() uses
// ld.global.nc (tile/arch/sm90/dependent.h).
#pragma once

#include <stdint.h>

namespace heddle::tile::sm80 {

// Loads 16 bytes for a single use. From sm_90 on, the load bypasses the L1, and the L2 evicts its data first.
template <typename T>
__device__ inline T load_stream(const T* p) {
  static_assert(sizeof(T) == 16 && alignof(T) == 16);
#if __CUDA_ARCH__ < 900
  return *p;
#else
  struct alignas(16) Words {
    uint32_t x, y, z, w;
  } words;
  asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "l"(p), "l"(0x12F0000000000000ull));
  return __builtin_bit_cast(T, words);
#endif
}

// Loads up to 16 bytes if `wanted`, else returns zeros.
template <typename T>
__device__ inline T load_or_zero(const T* p, bool wanted) {
  T x{};
  if (wanted) x = *p;
  return x;
}

// If `wanted`, loads 4, 8 or 16 bytes at this point of the program. Otherwise `to` keeps its value. No launch may write
// this memory, so a kernel may load it before it waits for the previous kernel. The load bypasses the L1. With `Once`,
// the L2 of sm_90 and later evicts the data first.
template <bool Once, typename T>
__device__ inline void load_weights_if(T& to, const T* p, bool wanted) {
  static_assert((sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16) && alignof(T) == sizeof(T));
  struct alignas(sizeof(T)) Words {
    uint32_t x[sizeof(T) / 4];
  };
  Words words = __builtin_bit_cast(Words, to);
  const auto wants = static_cast<uint32_t>(wanted);
  if constexpr (sizeof(T) == 4) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %2, 0;\n"
        "@p ld.global.nc.L1::no_allocate.u32 %0, [%1];}"
        : "+r"(words.x[0])
        : "l"(p), "r"(wants));
  } else if constexpr (sizeof(T) == 8) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %3, 0;\n"
        "@p ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];}"
        : "+r"(words.x[0]), "+r"(words.x[1])
        : "l"(p), "r"(wants));
  } else {
#if __CUDA_ARCH__ >= 900
    if constexpr (Once) {
      asm volatile(
          "{.reg .pred p; setp.ne.b32 p, %6, 0;\n"
          "@p ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;}"
          : "+r"(words.x[0]), "+r"(words.x[1]), "+r"(words.x[2]), "+r"(words.x[3])
          : "l"(p), "l"(0x12F0000000000000ull), "r"(wants));
      to = __builtin_bit_cast(T, words);
      return;
    }
#endif
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %5, 0;\n"
        "@p ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];}"
        : "+r"(words.x[0]), "+r"(words.x[1]), "+r"(words.x[2]), "+r"(words.x[3])
        : "l"(p), "r"(wants));
  }
  to = __builtin_bit_cast(T, words);
}

// Prefetches the cache line of `p` into the L2.
__device__ inline void prefetch(const void* p) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

// Loads 16 bytes at this point of the program: the compiler neither hoists the load out of a loop nor reuses its
// result. No other thread may write these bytes meanwhile.
template <typename T>
__device__ inline T load_here(const T* p) {
  static_assert(sizeof(T) == 16 && alignof(T) == 16);
  struct alignas(16) Words {
    uint32_t x, y, z, w;
  } words;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "l"(p));
  return __builtin_bit_cast(T, words);
}

// Stores N words with one instruction. The address must be aligned to the total size of the words. (The compiler often
// splits the store of a structure into one store per element.)
template <int N>
__device__ inline void store_words(void* p, const uint32_t (&words)[N]) {
  static_assert(N == 2 || N == 4);
  if constexpr (N == 2) {
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(p), "r"(words[0]), "r"(words[1]) : "memory");
  } else {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(words[0]), "r"(words[1]), "r"(words[2]),
                 "r"(words[3])
                 : "memory");
  }
}

// Hides from the compiler where the words come from, and takes no instruction.
template <int N>
__device__ inline void launder(uint32_t (&words)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+r"(words[i]));
}

}  // namespace heddle::tile::sm80
