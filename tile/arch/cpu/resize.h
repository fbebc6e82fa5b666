// Conversions between 32-bit integers and integers of 8 or 16 bits, a native vector of the former at a time. GCC 12
// takes vectors apart to convert them to vectors whose elements are several times as large or small.
#pragma once

#include "tile/arch/cpu/vec_types.h"

namespace heddle::tile::detail {

#if TILE_AVX2 && !defined(__clang__)
#define TILE_RESIZES_INTS 1
#else
#define TILE_RESIZES_INTS 0
#endif

template <typename T>
inline constexpr bool is_small_int = !is_float<T> && sizeof(T) < 4;

// True if resize_ints() converts vectors of W lanes from T to To.
template <typename To, typename T, int W>
inline constexpr bool resizes_ints = TILE_RESIZES_INTS&& W == kVectorBytes / 4 &&
                                     ((is_same<To, int32_t> && is_small_int<T>) ||
                                      (is_same<T, int32_t> && is_small_int<To>));

// True if resize_two() converts vectors of W lanes: two native vectors are narrowed together faster than one by one.
template <typename To, typename T, int W>
inline constexpr bool resizes_two = TILE_RESIZES_INTS && !TILE_AVX512 && W == kVectorBytes / 2 && is_same<T, int32_t> &&
                                    !is_float<To> && sizeof(To) == 2;

#if TILE_RESIZES_INTS
typedef char sixteen_bytes __attribute__((vector_size(16)));
typedef long long two_quads __attribute__((vector_size(16)));
typedef int native_words __attribute__((vector_size(kVectorBytes)));
typedef short half_shorts __attribute__((vector_size(kVectorBytes / 2)));

#if TILE_AVX512
template <bool Signed>
TILE_INLINE native_words widen_bytes(sixteen_bytes a) {
  return Signed ? __builtin_ia32_pmovsxbd512_mask(a, native_words{}, uint16_t(-1))
                : __builtin_ia32_pmovzxbd512_mask(a, native_words{}, uint16_t(-1));
}
template <bool Signed>
TILE_INLINE native_words widen_shorts(half_shorts a) {
  return Signed ? __builtin_ia32_pmovsxwd512_mask(a, native_words{}, uint16_t(-1))
                : __builtin_ia32_pmovzxwd512_mask(a, native_words{}, uint16_t(-1));
}
// Cores that split 512-bit operations take some cycles longer for these instructions with their result in memory than
// for a store after them.
template <typename T>
TILE_INLINE T in_register(T a) {
  asm("" : "+v"(a));
  return a;
}
TILE_INLINE sixteen_bytes narrow_to_bytes(native_words a) {
  return in_register(__builtin_ia32_pmovdb512_mask(a, sixteen_bytes{}, uint16_t(-1)));
}
TILE_INLINE half_shorts narrow_to_shorts(native_words a) {
  return in_register(__builtin_ia32_pmovdw512_mask(a, half_shorts{}, uint16_t(-1)));
}
#else
template <bool Signed>
TILE_INLINE native_words widen_bytes(sixteen_bytes a) {
  return Signed ? __builtin_ia32_pmovsxbd256(a) : __builtin_ia32_pmovzxbd256(a);
}
template <bool Signed>
TILE_INLINE native_words widen_shorts(half_shorts a) {
  return Signed ? __builtin_ia32_pmovsxwd256(a) : __builtin_ia32_pmovzxwd256(a);
}
// The low parts of the lanes move to the front of each half of the register, then the halves to each other.
typedef char all_bytes __attribute__((vector_size(32)));
typedef int four_words __attribute__((vector_size(16)));
typedef long long four_quads __attribute__((vector_size(32)));
TILE_INLINE sixteen_bytes narrow_to_bytes(native_words a) {
  const all_bytes order = {0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                           0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
  const auto both = (four_quads)__builtin_ia32_pshufb256((all_bytes)a, order);
  const auto low = (four_words)two_quads{both[0], both[1]}, high = (four_words)two_quads{both[2], both[3]};
  return (sixteen_bytes)__builtin_shufflevector(low, high, 0, 4, 1, 5);
}
TILE_INLINE half_shorts narrow_to_shorts(native_words a) {
  const all_bytes order = {0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1,
                           0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1};
  const auto both = (four_quads)__builtin_ia32_pshufb256((all_bytes)a, order);
  const four_quads joined = __builtin_shufflevector(both, both, 0, 2, 1, 3);
  return (half_shorts)two_quads{joined[0], joined[1]};
}
// The instruction saturates, so it gets the low parts alone. It takes halves of both registers in turns.
template <typename To>
TILE_INLINE vec<To, 16> resize_two(vec<int32_t, 16> a) {
  const native_words low = native_words{} + 0xffff;
  const auto both = (four_quads)__builtin_ia32_packusdw256((native_words)a.lo.v & low, (native_words)a.hi.v & low);
  return {(typename vec<To, 16>::native)__builtin_shufflevector(both, both, 0, 2, 1, 3)};
}
#endif

template <typename To, typename T, int W>
TILE_INLINE vec<To, W> resize_ints(vec<T, W> a) {
  vec<To, W> r;
  if constexpr (sizeof(To) == 4) {
    native_words wide;
    if constexpr (sizeof(T) == 1) {
      sixteen_bytes small;
      if constexpr (W == 16) {
        small = (sixteen_bytes)a.v;
      } else {
        small = (sixteen_bytes)two_quads{__builtin_bit_cast(long long, a.v), 0};
      }
      wide = widen_bytes<is_signed<T>>(small);
    } else {
      wide = widen_shorts<is_signed<T>>((half_shorts)a.v);
    }
    r.v = (typename vec<To, W>::native)wide;
  } else if constexpr (sizeof(To) == 2) {
    r.v = (typename vec<To, W>::native)narrow_to_shorts((native_words)a.v);
  } else {
    const sixteen_bytes small = narrow_to_bytes((native_words)a.v);
    if constexpr (W == 16) {
      r.v = (typename vec<To, W>::native)small;
    } else {
      const long long low = ((two_quads)small)[0];
      r.v = __builtin_bit_cast(typename vec<To, W>::native, low);
    }
  }
  return r;
}
#endif

}  // namespace heddle::tile::detail
