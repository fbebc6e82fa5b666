// The emulator's version of tile/arch/sm80/ldmatrix.h.
#pragma once

#include <stdint.h>

namespace heddle::tile::sm80 {

template <bool Transposed, int N>
inline void load_matrices(uint32_t (&r)[N], uint32_t row, HEDDLE_PLACE) {
  static_assert(N == 1 || N == 2 || N == 4);
  heddle_emulated_api->load_matrices(r, N, Transposed, row, place);
}

}  // namespace heddle::tile::sm80
