// Addresses of the bytes of a tile in shared memory under TMA's swizzle. Pure index arithmetic, shared by the kernels
// and the scheduler and tested on the host.
#pragma once

#include "tile/core/config.h"

namespace heddle::tile {

// The xor swizzle of rows of Width bytes (16: none, 32, 64 or 128): the index of the 16-byte piece inside the row is
// xored with bits 7.. of the offset, so that eight rows of one column of pieces lie in different banks. `offset` counts
// from a base that is aligned to 8 * Width bytes. An involution.
template <int Width>
TILE_HD constexpr uint32_t swizzle(uint32_t offset) {
  static_assert(Width == 16 || Width == 32 || Width == 64 || Width == 128);
  return offset ^ (((offset >> 7) & (Width / 16 - 1)) << 4);
}

// The widest swizzled row that divides `bytes`; bytes is a multiple of 32.
TILE_HD constexpr int swizzle_width(int bytes) {
  return bytes % 128 == 0 ? 128 : bytes % 64 == 0 ? 64 : 32;
}

}  // namespace heddle::tile
