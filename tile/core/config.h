// What differs between the compilers that read tile/core: g++, clang++, nvcc and NVRTC (which has no standard
// headers but those that its caller hands over).
#pragma once

#if !defined(__CUDACC_RTC__) || __has_include(<stdint.h>)
#include <stddef.h>
#include <stdint.h>
#else
using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long;
#endif

// Prefix of functions that kernels on a device call too.
#if defined(__CUDACC__)
#define TILE_HD __host__ __device__
#else
#define TILE_HD
#endif

namespace heddle::tile {

// Additions after which a running sum is added to a compensated one. The error of a plain sum grows with the square
// root of its number of terms; that of a compensated sum does not.
inline constexpr int64_t kLongSum = 128;

}  // namespace heddle::tile
