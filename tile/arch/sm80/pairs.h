// Arithmetic on pairs of f16 (or bf16) numbers in one register. It has twice the rate of f32.
#pragma once

#include <stdint.h>

#include "tile/arch/sm80/cvt.h"

namespace heddle::tile::cuda {

__device__ inline uint32_t pair_mul(uint32_t x, uint32_t y) {
  uint32_t r;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y));
  return r;
}
__device__ inline uint32_t pair_fma(uint32_t x, uint32_t y, uint32_t z) {
  uint32_t r;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  return r;
}
__device__ inline uint32_t bfloat_pair_fma(uint32_t x, uint32_t y, uint32_t z) {
  uint32_t r;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  return r;
}
// The maximum; NaN if either number is NaN.
__device__ inline uint32_t pair_max(uint32_t x, uint32_t y) {
  uint32_t r;
  asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y));
  return r;
}
// tanh with an error of 2^-11.
__device__ inline uint32_t pair_tanh(uint32_t x) {
  uint32_t r;
  asm("tanh.approx.f16x2 %0, %1;" : "=r"(r) : "r"(x));
  return r;
}
__device__ inline uint32_t pair_of(float x) {
  return floats_to_halves(x, x);
}

}  // namespace heddle::tile::cuda
