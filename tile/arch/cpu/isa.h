// CPU features that the compiler may use, according to its predefined macros; the vector width; attributes of
// functions.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TILE_INLINE inline __attribute__((always_inline))
#define TILE_RESTRICT __restrict__

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
#define TILE_AVX512 1
#else
#define TILE_AVX512 0
#endif
#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define TILE_AVX2 1
#else
#define TILE_AVX2 0
#endif

// True if the compiler has a barrier that keeps a value from being contracted with the next operation (into an FMA).
// The barrier costs no instruction for scalars. GCC 12 takes vectors apart for it, so they are passed through a
// register that an empty assembly statement might change.
#if defined(__has_builtin) && __has_builtin(__builtin_assoc_barrier)
#define TILE_ASSOC_BARRIER 1
#else
#define TILE_ASSOC_BARRIER 0
#endif
#if TILE_AVX512
#define TILE_VECTOR_REGISTER(value) "+v"(value)
#else
#define TILE_VECTOR_REGISTER(value) "+x"(value)
#endif

namespace heddle::tile {

// Bytes of one native vector register. A wider `vec` is a pair of halves.
inline constexpr int kVectorBytes = TILE_AVX512 ? 64 : TILE_AVX2 ? 32 : 16;
// Number of f32 lanes in a native vector: 16 with AVX-512, 8 with AVX2, 4 otherwise.
inline constexpr int kLanes = kVectorBytes / 4;

}  // namespace heddle::tile
