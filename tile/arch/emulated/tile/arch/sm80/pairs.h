// Emulated versions of the functions of tile/arch/sm80/pairs.h.
#pragma once

#include <stdint.h>

#include "tile/arch/sm80/cvt.h"

namespace heddle::tile::cuda {

template <typename F>
inline uint32_t pair_each(F f, uint32_t x, uint32_t y = 0, uint32_t z = 0) {
  const auto low = [](uint32_t a) { return half_to_float(static_cast<uint16_t>(a)); };
  const auto high = [](uint32_t a) { return half_to_float(static_cast<uint16_t>(a >> 16)); };
  return floats_to_halves(f(low(x), low(y), low(z)), f(high(x), high(y), high(z)));
}
inline uint32_t pair_mul(uint32_t x, uint32_t y) {
  return pair_each([](float a, float b, float) { return a * b; }, x, y);
}
inline uint32_t pair_fma(uint32_t x, uint32_t y, uint32_t z) {
  return pair_each([](float a, float b, float c) { return __builtin_fmaf(a, b, c); }, x, y, z);
}
inline uint32_t bfloat_pair_fma(uint32_t x, uint32_t y, uint32_t z) {
  const auto low = [](uint32_t a) { return __builtin_bit_cast(float, a << 16); };
  const auto high = [](uint32_t a) { return __builtin_bit_cast(float, a & 0xffff0000u); };
  return floats_to_bfloats(__builtin_fmaf(low(x), low(y), low(z)), __builtin_fmaf(high(x), high(y), high(z)));
}
inline uint32_t pair_max(uint32_t x, uint32_t y) {
  return pair_each([](float a, float b, float) { return a != a || a > b ? a : b; }, x, y);
}
inline uint32_t pair_tanh(uint32_t x) {
  return pair_each([](float a, float, float) { return __builtin_tanhf(a) * (1 - 0x1p-12f); }, x);
}
inline uint32_t pair_of(float x) {
  return floats_to_halves(x, x);
}

}  // namespace heddle::tile::cuda
