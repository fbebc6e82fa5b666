// Arithmetic on integers.
#pragma once

#include <stdint.h>

namespace heddle::tile::cuda {

// 0 - x, as ~(x - 1), for ptxas of CUDA 13.0 has two faults. It folds a negation into the second operand of sm_90's
// VIMNMX3 (the minimum or maximum of three), which has no room for a sign: min(min(-a, -b), c) came out as
// min(-a, b, c). And where a branch tells what x is, it takes ~~x for ~x, as in ~x + 1 of an x that is ~y.
__device__ inline uint32_t negate(uint32_t x) {
  uint32_t y;
  asm("{\n.reg .b32 before;\nadd.s32 before, %1, -1;\nnot.b32 %0, before;\n}" : "=r"(y) : "r"(x));
  return y;
}

}  // namespace heddle::tile::cuda
