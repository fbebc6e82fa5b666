// The elementary functions of ROCm's device library (OCML). Only units that call one need the library.
#pragma once

#include "tile/arch/hip/keywords.h"
#include "tile/core/elementary.h"

#define TILE_MATH(name) heddle_hip_##name

#define TILE_OCML(NAME)                                          \
  extern "C" __device__ float __ocml_##NAME##_f32(float);        \
  extern "C" __device__ double __ocml_##NAME##_f64(double);      \
  __device__ __forceinline__ float TILE_MATH(NAME##f)(float x) { \
    return __ocml_##NAME##_f32(x);                               \
  }                                                              \
  __device__ __forceinline__ double TILE_MATH(NAME)(double x) {  \
    return __ocml_##NAME##_f64(x);                               \
  }
TILE_ELEMENTARY(TILE_OCML)
#undef TILE_OCML

#define TILE_OCML_TWO(NAME)                                               \
  extern "C" __device__ float __ocml_##NAME##_f32(float, float);          \
  extern "C" __device__ double __ocml_##NAME##_f64(double, double);       \
  __device__ __forceinline__ float TILE_MATH(NAME##f)(float x, float y) { \
    return __ocml_##NAME##_f32(x, y);                                     \
  }                                                                       \
  __device__ __forceinline__ double TILE_MATH(NAME)(double x, double y) { \
    return __ocml_##NAME##_f64(x, y);                                     \
  }
TILE_OCML_TWO(atan2)
TILE_OCML_TWO(pow)
#undef TILE_OCML_TWO
