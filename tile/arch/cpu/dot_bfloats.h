// Sums of products of bf16 numbers that lie side by side in 32-bit lanes.
#pragma once

#include "tile/arch/cpu/lanes.h"

// True if one instruction multiplies the two bf16 numbers of each lane and adds both products.
#if TILE_AVX512 && defined(__AVX512BF16__)
#define TILE_BFLOAT_DOT 1
#else
#define TILE_BFLOAT_DOT 0
#endif

namespace heddle::tile {

// sum + the two products of bf16 numbers in each lane. Lanes of a and b hold the bits of two numbers each. Every
// addition rounds to f32. The instruction treats subnormal numbers as zeros.
template <int W>
TILE_INLINE vec<float, W> add_bfloat_products(vec<float, W> a, vec<float, W> b, vec<float, W> sum) {
  if constexpr (is_wide<float, W>) {
    return {add_bfloat_products(a.lo, b.lo, sum.lo), add_bfloat_products(a.hi, b.hi, sum.hi)};
#if TILE_BFLOAT_DOT
  } else if constexpr (W == 16) {
    // The types of the builtin's operands differ from compiler to compiler, and from version to version.
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum.v) : "v"(a.v), "v"(b.v));
    return sum;
#endif
  } else {
    const vec<uint32_t, W> x = bit_cast<uint32_t>(a), y = bit_cast<uint32_t>(b);
    sum = fma(bit_cast<float>(x & 0xffff0000u), bit_cast<float>(y & 0xffff0000u), sum);
    return fma(bit_cast<float>(x << 16u), bit_cast<float>(y << 16u), sum);
  }
}

}  // namespace heddle::tile
