// Emulated version of tile/arch/sm90/wgmma_registers.h. The emulator reads the words of A when it computes the product.
#pragma once

#include "tile/arch/sm90/wgmma.h"

namespace heddle::tile::sm90 {

template <typename In, int N>
struct WgmmaRegisters {
  static_assert((sizeof(In) == 2 || is_same<In, tf32>)&&N % 16 == 0 && N >= 16 && N <= 256);
  template <bool MnB>
  static void issue(float (&d)[N / 2], const uint32_t (&a)[4], uint64_t b, int accumulate, HEDDLE_PLACE) {
    heddle_emulated_api->wgmma({emulated_element<In>, N, d, 0, b, false, MnB, accumulate != 0, a}, place);
  }
};

}  // namespace heddle::tile::sm90
