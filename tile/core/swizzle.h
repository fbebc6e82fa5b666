// Where the bytes of a tile lie in shared memory when the copy engine swizzles them, and in which order tiles are
// walked. Pure index arithmetic: the host tests it, the kernel and the scheduler share it.
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

struct TileIndex {
  int32_t m, n;
};

// Tile number `linear` of a grid of tiles_m x tiles_n: bands of `group` rows of tiles, column by column inside a band,
// so that tiles that run together share operands in L2. A bijection for every group >= 1.
TILE_HD constexpr TileIndex raster(int32_t linear, int32_t tiles_m, int32_t tiles_n, int32_t group) {
  const auto unsigned_of = [](int32_t x) { return static_cast<uint32_t>(x); };  // divides in half the instructions
  uint32_t inside = unsigned_of(linear);
  int32_t first = 0;
  if (tiles_m > group) {
    const uint32_t area = unsigned_of(group) * unsigned_of(tiles_n), band = inside / area;
    inside -= band * area;
    first = static_cast<int32_t>(band) * group;
  }
  const uint32_t height = unsigned_of(tiles_m - first < group ? tiles_m - first : group);
  if (height == 1) return {first, static_cast<int32_t>(inside)};
  const uint32_t column = inside / height;
  return {first + static_cast<int32_t>(inside - column * height), static_cast<int32_t>(column)};
}

// Tiles of k that part `part` of `parts` covers: [first, last). Parts differ by at most one tile. A block computes this
// before its first load: 64-bit divisions would cost 0.5 us.
struct Range {
  int32_t first, last;
};
TILE_HD constexpr Range part_of(int32_t count, int32_t parts, int32_t part) {
  if (parts == 1) return {0, count};
  const auto each = static_cast<int32_t>(static_cast<uint32_t>(count) / static_cast<uint32_t>(parts));
  const int32_t more = count - each * parts;  // the first parts take one more
  const int32_t first = each * part + (part < more ? part : more);
  return {first, first + each + (part < more ? 1 : 0)};
}

}  // namespace heddle::tile
