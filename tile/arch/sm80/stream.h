// Loads of what is read once, or again and again. None is ld.global.nc (tile/arch/sm90/dependent.h).
#pragma once

#include <stdint.h>

namespace heddle::tile::sm80 {

// *p, 16 bytes that pass by the L1 and, from sm_90 on, that the L2 forgets first.
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

// Asks for the line of `p` to be in the L2 soon.
__device__ inline void prefetch(const void* p) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

// *p, 16 bytes that nothing writes meanwhile, at this place of the program: the compiler neither moves the load out of
// a loop nor keeps what it brought.
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

}  // namespace heddle::tile::sm80
