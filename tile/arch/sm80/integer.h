// Integer arithmetic.
#pragma once

#include <stdint.h>

namespace heddle::tile::cuda {

// Returns 0 - x, computed as ~(x - 1) to avoid two bugs of ptxas in CUDA 13.0. First, ptxas folds a negation into the
// second operand of sm_90's VIMNMX3 (minimum or maximum of three), which has no sign bit: min(min(-a, -b), c) became
// min(-a, b, c). Second, if a branch implies the value of x, ptxas mistakes ~~x for ~x, for example in ~x + 1 with x =
// ~y.
__device__ inline uint32_t negate(uint32_t x) {
  uint32_t y;
  asm("{\n.reg .b32 before;\nadd.s32 before, %1, -1;\nnot.b32 %0, before;\n}" : "=r"(y) : "r"(x));
  return y;
}

// Returns x & mask | other with one instruction. The compiler would use two if `mask` and `other` are constants.
__device__ inline uint32_t mask_or(uint32_t x, uint32_t mask, uint32_t other) {
  uint32_t y;
  asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(y) : "r"(x), "r"(mask), "r"(other));
  return y;
}

}  // namespace heddle::tile::cuda
