// Arithmetic on integers.
#pragma once

#include <stdint.h>

namespace heddle::tile::cuda {

// 0 - x. As a signed negation, ptxas of CUDA 13.0 folds it into the second operand of sm_90's VIMNMX3 (a minimum or
// maximum of three), which has no room for the sign: min(min(-a, -b), c) came out as min(-a, b, c). Unsigned ones stay.
__device__ inline uint32_t negate(uint32_t x) {
  uint32_t y;
  asm("sub.u32 %0, 0, %1;" : "=r"(y) : "r"(x));
  return y;
}

}  // namespace heddle::tile::cuda
