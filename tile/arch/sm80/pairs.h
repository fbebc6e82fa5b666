// Arithmetic on two f16 in one register, at twice the rate of f32.
#pragma once

#include <stdint.h>

#include "tile/arch/sm80/cvt.h"

namespace heddle::tile::cuda {

__device__ inline uint32_t pair_fma(uint32_t x, uint32_t y, uint32_t z) {
  uint32_t r;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  return r;
}
__device__ inline uint32_t pair_of(float x) {
  return floats_to_halves(x, x);
}

}  // namespace heddle::tile::cuda
