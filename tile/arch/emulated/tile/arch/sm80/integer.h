// The emulator's version of tile/arch/sm80/integer.h.
#pragma once

#include <stdint.h>

namespace heddle::tile::cuda {

inline uint32_t negate(uint32_t x) {
  return 0 - x;
}

}  // namespace heddle::tile::cuda
