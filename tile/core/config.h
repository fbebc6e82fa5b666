// Handles differences between the compilers that read tile/core: g++, clang++, nvcc and NVRTC. (NVRTC only has the
// standard headers that its caller provides.)
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

// Prefix of functions that device code may call, too.
#if defined(__CUDACC__)
#define TILE_HD __host__ __device__
#else
#define TILE_HD
#endif

namespace heddle::tile {

// GCC 10 lacks __builtin_bit_cast, so copy_bits() replaces it. NVRTC can express infinity only as a bit cast.
#if defined(__GNUC__) && __GNUC__ < 11 && !defined(__clang__) && !defined(__CUDACC__)
template <typename To, typename From>
inline To copy_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}
#define __builtin_bit_cast(To, ...) ::heddle::tile::copy_bits<To>(__VA_ARGS__)
inline constexpr double kInfinity = __builtin_inf();
#else
inline constexpr double kInfinity = __builtin_bit_cast(double, uint64_t(0x7ff0000000000000));
#endif

// The number of terms in a plain sum before the plain sum is added to a compensated sum. The error of a plain sum grows
// with the square root of the number of terms; the error of a compensated sum does not grow.
inline constexpr int64_t kLongSum = 128;

}  // namespace heddle::tile
