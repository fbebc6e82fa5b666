// CUDA intrinsics for the emulator: bit and byte operations, reinterpretation, conversion, and loads and stores with
// cache hints.
#pragma once

#include <stddef.h>

#include "tile/arch/emulated/keywords.h"

#define HEDDLE_AS(NAME, TO, FROM)     \
  inline TO NAME(FROM x) {            \
    return __builtin_bit_cast(TO, x); \
  }
HEDDLE_AS(__uint_as_float, float, unsigned)
HEDDLE_AS(__int_as_float, float, int)
HEDDLE_AS(__float_as_uint, unsigned, float)
HEDDLE_AS(__float_as_int, int, float)
HEDDLE_AS(__longlong_as_double, double, long long)
HEDDLE_AS(__double_as_longlong, long long, double)
#undef HEDDLE_AS
inline int __double2hiint(double x) {
  return static_cast<int>(__builtin_bit_cast(unsigned long long, x) >> 32);
}
inline int __double2loint(double x) {
  return static_cast<int>(__builtin_bit_cast(unsigned long long, x));
}
inline double __hiloint2double(int high, int low) {
  return __builtin_bit_cast(
      double, static_cast<unsigned long long>(static_cast<unsigned>(high)) << 32 | static_cast<unsigned>(low));
}

inline int __popc(unsigned x) {
  return __builtin_popcount(x);
}
inline int __popcll(unsigned long long x) {
  return __builtin_popcountll(x);
}
inline int __clz(int x) {
  return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x));
}
inline int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
inline int __ffs(int x) {
  return __builtin_ffs(x);
}
inline int __ffsll(long long x) {
  return __builtin_ffsll(x);
}
inline unsigned __brev(unsigned x) {
  unsigned y = 0;
  for (int bit = 0; bit < 32; ++bit) y |= (x >> bit & 1) << (31 - bit);
  return y;
}
inline int __mulhi(int a, int b) {
  return static_cast<int>(static_cast<long long>(a) * b >> 32);
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
__extension__ typedef unsigned __int128 HeddleUnsigned128;
__extension__ typedef __int128 HeddleSigned128;
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<HeddleUnsigned128>(a) * b >> 64);
}
inline long long __mul64hi(long long a, long long b) {
  return static_cast<long long>(static_cast<HeddleSigned128>(a) * b >> 64);
}
// Byte i of the result is byte s & 7 of the eight bytes b:a, where s = selector >> 4 * i. If bit 3 of s is set, the
// sign bit of the selected byte is copied to all bits of byte i instead.
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(b) << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned which = selector >> (4 * i) & 15;
    unsigned byte = static_cast<unsigned>(bytes >> (8 * (which & 7))) & 255;
    if ((which & 8) != 0) byte = (byte & 128) != 0 ? 255 : 0;
    result |= byte << (8 * i);
  }
  return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (shift & 31));
}
inline int __dp4a(int a, int b, int c) {
  unsigned sum = static_cast<unsigned>(c);
  for (int i = 0; i < 32; i += 8) {
    sum += static_cast<unsigned>(static_cast<signed char>(a >> i) * static_cast<signed char>(b >> i));
  }
  return static_cast<int>(sum);
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 32; i += 8) c += (a >> i & 255) * (b >> i & 255);
  return c;
}
inline int __sad(int a, int b, unsigned c) {
  return static_cast<int>((a > b ? static_cast<unsigned>(a) - static_cast<unsigned>(b)
                                 : static_cast<unsigned>(b) - static_cast<unsigned>(a)) +
                          c);
}

// Conversions to integers with a rounding mode. Values out of range saturate; NaN becomes zero.
namespace heddle::emulated {

template <typename To, typename From>
inline To saturate(From x) {
  constexpr bool kSigned = To(-1) < To(0);
  constexpr int kBits = sizeof(To) * 8 - (kSigned ? 1 : 0);
  if (x != x) return 0;
  const From end = static_cast<From>(2) * static_cast<From>(1ull << (kBits - 1));
  const To most = static_cast<To>(~0ull >> (64 - kBits));
  if (x >= end) return most;
  if (x < (kSigned ? -end : From(0))) return kSigned ? static_cast<To>(~most) : To(0);
  return static_cast<To>(x);
}

}  // namespace heddle::emulated

#define HEDDLE_ROUNDING(NAME, TO, FROM, SUFFIX)                        \
  inline TO NAME##_rn(FROM x) {                                        \
    return heddle::emulated::saturate<TO>(__builtin_rint##SUFFIX(x));  \
  }                                                                    \
  inline TO NAME##_rz(FROM x) {                                        \
    return heddle::emulated::saturate<TO>(__builtin_trunc##SUFFIX(x)); \
  }                                                                    \
  inline TO NAME##_rd(FROM x) {                                        \
    return heddle::emulated::saturate<TO>(__builtin_floor##SUFFIX(x)); \
  }                                                                    \
  inline TO NAME##_ru(FROM x) {                                        \
    return heddle::emulated::saturate<TO>(__builtin_ceil##SUFFIX(x));  \
  }
HEDDLE_ROUNDING(__float2int, int, float, f)
HEDDLE_ROUNDING(__float2uint, unsigned, float, f)
HEDDLE_ROUNDING(__float2ll, long long, float, f)
HEDDLE_ROUNDING(__float2ull, unsigned long long, float, f)
HEDDLE_ROUNDING(__double2int, int, double, )
HEDDLE_ROUNDING(__double2uint, unsigned, double, )
HEDDLE_ROUNDING(__double2ll, long long, double, )
HEDDLE_ROUNDING(__double2ull, unsigned long long, double, )
#undef HEDDLE_ROUNDING

// Loads and stores with a cache hint. The emulator ignores the hint.
#define HEDDLE_LOAD(NAME)     \
  template <typename T>       \
  inline T NAME(const T* p) { \
    return *p;                \
  }
#define HEDDLE_STORE(NAME)          \
  template <typename T>             \
  inline void NAME(T* p, T value) { \
    *p = value;                     \
  }
HEDDLE_LOAD(__ldg)
HEDDLE_LOAD(__ldcg)
HEDDLE_LOAD(__ldca)
HEDDLE_LOAD(__ldcs)
HEDDLE_LOAD(__ldlu)
HEDDLE_LOAD(__ldcv)
HEDDLE_STORE(__stcg)
HEDDLE_STORE(__stcs)
HEDDLE_STORE(__stwb)
HEDDLE_STORE(__stwt)
#undef HEDDLE_LOAD
#undef HEDDLE_STORE

// Converts between pointers and addresses in the shared-memory window of the block.
inline size_t __cvta_generic_to_shared(const void* pointer) {
  const heddle::emulated::BlockInfo& block = *heddle_emulated_thread->block;
  return static_cast<size_t>(static_cast<const uint8_t*>(pointer) - block.shared) + block.shared_base;
}
inline void* __cvta_shared_to_generic(size_t address) {
  const heddle::emulated::BlockInfo& block = *heddle_emulated_thread->block;
  return block.shared + (address - block.shared_base);
}
inline size_t __cvta_generic_to_global(const void* pointer) {
  return reinterpret_cast<size_t>(pointer);
}
inline unsigned __isShared(const void* pointer) {
  const heddle::emulated::BlockInfo& block = *heddle_emulated_thread->block;
  return static_cast<size_t>(static_cast<const uint8_t*>(pointer) - block.shared) < block.shared_bytes;
}

inline long long clock64() {
  return static_cast<long long>(__builtin_ia32_rdtsc());
}
inline long clock() {
  return static_cast<long>(clock64());
}
