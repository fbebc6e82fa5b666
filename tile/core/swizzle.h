// Addresses within a shared-memory tile under TMA's swizzle. This is pure index arithmetic, which kernels and the
// scheduler share. It is tested on the host.
#pragma once

#include "tile/core/config.h"

namespace heddle::tile {

// The xor swizzle for rows of Width bytes: 32, 64, 128, or 16 for no swizzle. The index of the 16-byte piece within the
// row is xored with the bits of the offset from bit 7 on. Eight rows of one column of pieces are therefore in different
// banks. `offset` is relative to a base that is aligned to 8 * Width bytes. The function is its own inverse.
template <int Width>
TILE_HD constexpr uint32_t swizzle(uint32_t offset) {
  static_assert(Width == 16 || Width == 32 || Width == 64 || Width == 128);
  return offset ^ (((offset >> 7) & (Width / 16 - 1)) << 4);
}

// The widest swizzled row whose size divides `bytes`, which is a multiple of 32.
TILE_HD constexpr int swizzle_width(int bytes) {
  return bytes % 128 == 0 ? 128 : bytes % 64 == 0 ? 64 : 32;
}

}  // namespace heddle::tile
