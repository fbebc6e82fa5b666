// The functions of tile/arch/sm80/integer.h for AMD GPUs.
#pragma once

#include <stdint.h>

namespace heddle::tile::cuda {

__device__ inline uint32_t negate(uint32_t x) {
  return 0u - x;
}
__device__ inline uint32_t mask_or(uint32_t x, uint32_t mask, uint32_t other) {
  return (x & mask) | other;
}

}  // namespace heddle::tile::cuda
