// Defines the compiler builtins that the tile library uses and NVRTC lacks, under their usual names. When an emulator
// compiles the same text for the host, the host's compiler provides these builtins.
#pragma once

#include "tile/core/types.h"

#define TILE_INLINE __device__ __forceinline__

#if defined(__CUDACC_RTC__)
#define __builtin_inff() __int_as_float(0x7f800000)
#define __builtin_inf() __longlong_as_double(0x7ff0000000000000ll)
#define __builtin_nanf(text) __int_as_float(0x7fc00000)
#define __builtin_nan(text) __longlong_as_double(0x7ff8000000000000ll)
#define TILE_MATH(name) ::name
#define TILE_ASSUME(condition) __builtin_assume(condition)
#define TILE_BUILTIN_OF(name)                                    \
  template <typename... T>                                       \
  __device__ __forceinline__ auto __builtin_##name(T... value) { \
    return ::name(value...);                                     \
  }
TILE_BUILTIN_OF(fmaf)
TILE_BUILTIN_OF(fma)
TILE_BUILTIN_OF(fmodf)
TILE_BUILTIN_OF(fmod)
TILE_BUILTIN_OF(fabsf)
TILE_BUILTIN_OF(fabs)
TILE_BUILTIN_OF(floorf)
TILE_BUILTIN_OF(floor)
TILE_BUILTIN_OF(ceilf)
TILE_BUILTIN_OF(ceil)
TILE_BUILTIN_OF(truncf)
TILE_BUILTIN_OF(trunc)
TILE_BUILTIN_OF(rintf)
TILE_BUILTIN_OF(rint)
TILE_BUILTIN_OF(nearbyintf)
TILE_BUILTIN_OF(copysignf)
TILE_BUILTIN_OF(copysign)
TILE_BUILTIN_OF(sqrtf)
TILE_BUILTIN_OF(sqrt)
TILE_BUILTIN_OF(ldexpf)
TILE_BUILTIN_OF(frexpf)
TILE_BUILTIN_OF(round)
TILE_BUILTIN_OF(log2)
TILE_BUILTIN_OF(log)
TILE_BUILTIN_OF(cos)
#undef TILE_BUILTIN_OF
__device__ __forceinline__ bool __builtin_isinf(float x) {
  return ::fabsf(x) == __builtin_inff();
}
__device__ __forceinline__ int __builtin_signbit(float x) {
  return __float_as_int(x) < 0;
}
#else
#if !defined(TILE_MATH)
#define TILE_MATH(name) __builtin_##name
#endif
#define TILE_ASSUME(condition) \
  do {                         \
    if (!(condition)) {        \
      __builtin_unreachable(); \
    }                          \
  } while (false)
#endif
