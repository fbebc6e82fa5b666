// The emulator's replacement for tile/arch/sm90/stmatrix.h.
#pragma once

#include <stdint.h>

namespace heddle::tile::sm90 {

template <bool Transposed>
inline void store_matrices(uint32_t address, uint32_t a, uint32_t b, uint32_t c, uint32_t d, HEDDLE_PLACE) {
  const uint32_t words[4] = {a, b, c, d};
  heddle_emulated_api->store_matrices(words, 4, Transposed, address, place);
}

template <bool Transposed>
inline void store_matrices(uint32_t address, uint32_t a, uint32_t b, HEDDLE_PLACE) {
  const uint32_t words[2] = {a, b};
  heddle_emulated_api->store_matrices(words, 2, Transposed, address, place);
}

}  // namespace heddle::tile::sm90
