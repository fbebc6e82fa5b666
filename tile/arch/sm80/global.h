// Loads and stores of words in global memory. Thread blocks exchange results through these words.
#pragma once

#include <stdint.h>

namespace heddle::tile::sm80 {

// Four words, 16-byte aligned, that one access stores or loads: other threads see either all four new words or none.
struct alignas(16) Quad {
  uint32_t words[4];
};
__device__ inline void store_together(Quad* to, const Quad& q) {
  const uint64_t low = q.words[0] | uint64_t{q.words[1]} << 32, high = q.words[2] | uint64_t{q.words[3]} << 32;
  asm volatile(
      "{\n"
      ".reg .b128 all;\n"
      "mov.b128 all, {%1, %2};\n"
      "st.relaxed.gpu.global.b128 [%0], all;\n"
      "}" ::"l"(to),
      "l"(low), "l"(high)
      : "memory");
}
__device__ inline Quad load_together(const Quad* from) {
  uint64_t low, high;
  asm volatile(
      "{\n"
      ".reg .b128 all;\n"
      "ld.relaxed.gpu.global.b128 all, [%2];\n"
      "mov.b128 {%0, %1}, all;\n"
      "}"
      : "=l"(low), "=l"(high)
      : "l"(from)
      : "memory");
  return {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32), static_cast<uint32_t>(high),
          static_cast<uint32_t>(high >> 32)};
}

// Loads a word of 1, 2, 4 or 8 bytes from memory at this point of the program. If `Acquires`, later accesses see the
// data that the writer of the word released.
#define TILE_LOAD_NOW(T, SUFFIX, REGISTER, HELD)                                                          \
  template <bool Acquires>                                                                                \
  __device__ inline T load_now(const T* from) {                                                           \
    HELD word;                                                                                            \
    if constexpr (Acquires) {                                                                             \
      asm volatile("ld.acquire.sys.global." SUFFIX " %0, [%1];" : REGISTER(word) : "l"(from) : "memory"); \
    } else {                                                                                              \
      asm volatile("ld.volatile.global." SUFFIX " %0, [%1];" : REGISTER(word) : "l"(from) : "memory");    \
    }                                                                                                     \
    return static_cast<T>(word);                                                                          \
  }
TILE_LOAD_NOW(uint8_t, "u8", "=h", uint16_t)
TILE_LOAD_NOW(uint16_t, "u16", "=h", uint16_t)
TILE_LOAD_NOW(uint32_t, "u32", "=r", uint32_t)
TILE_LOAD_NOW(uint64_t, "u64", "=l", uint64_t)
#undef TILE_LOAD_NOW

}  // namespace heddle::tile::sm80
