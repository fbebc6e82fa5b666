// The layout of tiles in shared memory for tensor cores: the location of every element, and the fragments of a warp.
#pragma once

#include "tile/arch/sm80/convert.h"
#include "tile/arch/sm80/ldmatrix.h"
#include "tile/core/swizzle.h"

namespace heddle::tile::sm80 {

// The byte offset of element (row, k) of a tile. With AlongK, the tile is stored as rows of TileK elements. Otherwise
// it is stored in strips, which span at most 128 bytes along the rows and have one line per k. Pieces of 16 bytes are
// swizzled so that reads of fragments have no bank conflicts. Such a read loads one piece from each of eight rows (or
// lines). For 32-bit elements that are contiguous along rows, it loads eight rows of four lines; a line must then have
// at least 64 bytes.
template <typename T, int Rows, int TileK, bool AlongK>
struct SwizzledTile {
  static constexpr bool kAlongK = AlongK;
  static constexpr int kSize = sizeof(T), kBytes = Rows * TileK * kSize;
  static constexpr int kPitch = AlongK ? TileK * kSize : Rows * kSize < 128 ? Rows * kSize : 128;
  static constexpr int kStripRows = kPitch / kSize, kStripBytes = TileK * kPitch;
  static_assert(kPitch == 32 || kPitch == 64 || kPitch == 128);
  static_assert(AlongK || kSize == 2 || (kSize == 4 && kPitch >= 64), "fragments of this type lie along k");

  __device__ static uint32_t place(uint32_t row, uint32_t k) {
    if constexpr (AlongK) {
      return swizzle<kPitch>(row * kPitch + k * kSize);
    } else {
      const uint32_t strip = row / kStripRows * kStripBytes, at = k * kPitch + row % kStripRows * kSize;
      if constexpr (kSize == 4) {
        return strip + (kPitch == 128 ? at ^ (k & 3) << 5 : at ^ (k & 2) << 4);
      } else {
        return strip + swizzle<kPitch>(at);
      }
    }
  }
};

// Locates a warp's fragments of one operand in a tile. A block has 16 rows. With `IsB`, the two halves of a block are
// the 8-column operands of two instructions.
template <typename In, typename Tile, int Depth, bool AlongK, bool IsB>
class FragmentReader {
 public:
  __device__ explicit FragmentReader(int first) {
    const int lane = threadIdx.x % 32;
    if constexpr (kMatrices) {
      const int half = lane / 8 % 2 * 8, other = lane / 16;
      const int row = first + lane % 8, k = 0;
      // For A, matrix 1 begins 8 rows after matrix 0, and matrix 2 begins half of the instruction's k after
      // matrix 0. For B, the offsets of matrices 1 and 2 are exchanged.
      const int rows_on = IsB ? other * 8 : half, k_on = (IsB ? half / 8 : other) * (Depth / 2);
      at_ = AlongK ? Tile::place(row + rows_on, k + k_on) : Tile::place(first + rows_on, lane % 8 + k_on);
    } else {
      at_ = Tile::place(first + lane / 4, lane % 4);
    }
  }

  // Reads block `block` of step `step` of a tile. `tile` is the tile's address in shared memory. `raw` is a generic
  // pointer to the tile; only 32-bit elements that are contiguous along rows are read through it.
  __device__ void read(uint32_t (&r)[4], const uint8_t* raw, uint32_t tile, int block, int step) const {
    if constexpr (kMatrices) {
      load_matrices<!AlongK>(r, tile + place(at_, block, step));
    } else {
      // A distance of 8 rows is 32 bytes; a distance of 4 along k is 4 lines.
      const auto word = [&](int rows_on, int k_on) {
        return *reinterpret_cast<const uint32_t*>(raw + (place(at_, block, step) ^ rows_on * 32) + k_on * Tile::kPitch);
      };
      r[0] = word(0, 0);
      r[1] = IsB ? word(0, 4) : word(1, 0);
      r[2] = IsB ? word(1, 0) : word(0, 4);
      r[3] = word(1, 4);
    }
  }

 private:
  static constexpr bool kMatrices = AlongK || sizeof(In) == 2;

  // Returns the offset of a block and step. The block and the step set only bits that are zero in the lane's offset
  // before swizzling, so xor adds these bits and keeps the swizzle.
  __device__ static uint32_t place(uint32_t at, int block, int step) {
    if constexpr (AlongK) {
      return (at ^ static_cast<uint32_t>(step * 32)) + block * 16 * Tile::kPitch;
    } else {
      constexpr int kBlock = 16 * sizeof(In);
      return (at ^ static_cast<uint32_t>(block * kBlock % Tile::kPitch)) +
             block * kBlock / Tile::kPitch * Tile::kStripBytes + step * Depth * Tile::kPitch;
    }
  }

  uint32_t at_;
};

// Rounds 32-bit operands after reading them, since the instruction ignores the low 13 bits. Rounds to nearest, with
// ties away from zero; NaN stays NaN. Other operands already have the instruction's format.
template <typename In>
__device__ inline void round_fragment(uint32_t& r) {
  if constexpr (is_same<In, cuda::tf32>) {
    const float x = __uint_as_float(r);
    r = x == x ? r + 0x1000 : r;
  }
}

}  // namespace heddle::tile::sm80
