// CUDA's built-in vector types, for the emulator.
#pragma once

#include "tile/arch/emulated/abi.h"

#define HEDDLE_VECTOR_TYPES(NAME, T, ALIGN2, ALIGN4)  \
  struct NAME##1 {                                    \
    T x;                                              \
  };                                                  \
  struct alignas(ALIGN2) NAME##2 {                    \
    T x, y;                                           \
  };                                                  \
  struct alignas(ALIGN4) NAME##4 {                    \
    T x, y, z, w;                                     \
  };                                                  \
  inline NAME##1 make_##NAME##1(T x) {                \
    return {x};                                       \
  }                                                   \
  inline NAME##2 make_##NAME##2(T x, T y) {           \
    return {x, y};                                    \
  }                                                   \
  inline NAME##4 make_##NAME##4(T x, T y, T z, T w) { \
    return {x, y, z, w};                              \
  }
#define HEDDLE_VECTOR_TYPE_3(NAME, T)            \
  struct NAME##3 {                               \
    T x, y, z;                                   \
  };                                             \
  inline NAME##3 make_##NAME##3(T x, T y, T z) { \
    return {x, y, z};                            \
  }

HEDDLE_VECTOR_TYPES(char, signed char, 2, 4)
HEDDLE_VECTOR_TYPES(uchar, unsigned char, 2, 4)
HEDDLE_VECTOR_TYPES(short, short, 4, 8)
HEDDLE_VECTOR_TYPES(ushort, unsigned short, 4, 8)
HEDDLE_VECTOR_TYPES(int, int, 8, 16)
HEDDLE_VECTOR_TYPES(uint, unsigned, 8, 16)
HEDDLE_VECTOR_TYPES(long, long, 16, 16)
HEDDLE_VECTOR_TYPES(ulong, unsigned long, 16, 16)
HEDDLE_VECTOR_TYPES(longlong, long long, 16, 16)
HEDDLE_VECTOR_TYPES(ulonglong, unsigned long long, 16, 16)
HEDDLE_VECTOR_TYPES(float, float, 8, 16)
HEDDLE_VECTOR_TYPES(double, double, 16, 16)
HEDDLE_VECTOR_TYPE_3(char, signed char)
HEDDLE_VECTOR_TYPE_3(uchar, unsigned char)
HEDDLE_VECTOR_TYPE_3(short, short)
HEDDLE_VECTOR_TYPE_3(ushort, unsigned short)
HEDDLE_VECTOR_TYPE_3(int, int)
HEDDLE_VECTOR_TYPE_3(longlong, long long)
HEDDLE_VECTOR_TYPE_3(ulonglong, unsigned long long)
HEDDLE_VECTOR_TYPE_3(float, float)
HEDDLE_VECTOR_TYPE_3(double, double)
#undef HEDDLE_VECTOR_TYPES
#undef HEDDLE_VECTOR_TYPE_3

using uint3 = heddle::emulated::Dim;
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) {
  return {x, y, z};
}
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};
