// The emulator's version of tile/arch/sm80/integer.h.
#pragma once

#include <stdint.h>

namespace heddle::tile::cuda {

inline uint32_t negate(uint32_t x) {
  return 0 - x;
}

inline uint32_t mask_or(uint32_t x, uint32_t mask, uint32_t other) {
  return (x & mask) | other;
}

}  // namespace heddle::tile::cuda
