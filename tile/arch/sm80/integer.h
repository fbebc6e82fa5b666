// Arithmetic on integers.
#pragma once

#include <stdint.h>

namespace heddle::tile::cuda {

// 0 - x, as ~x + 1. A negation, ptxas of CUDA 13.0 folds into the second operand of sm_90's VIMNMX3 (the minimum or
// maximum of three), which has no room for a sign: min(min(-a, -b), c) came out as min(-a, b, c).
__device__ inline uint32_t negate(uint32_t x) {
  uint32_t y;
  asm("{\n.reg .b32 inverse;\nnot.b32 inverse, %1;\nadd.s32 %0, inverse, 1;\n}" : "=r"(y) : "r"(x));
  return y;
}

}  // namespace heddle::tile::cuda
