// Tiles of operands in LDS, as waves read them for MFMA or WMMA.
#pragma once

#include "tile/arch/cuda/warp.h"
#include "tile/core/cuda_gemm.h"
#include "tile/kernel/cuda/operand/load.h"

#if TILE_WARP_LANES == 64
#include "tile/arch/gfx9/mfma.h"
#else
#include "tile/arch/gfx11/wmma.h"
#endif

namespace heddle::tile::cuda {

// The instruction that multiplies matrices of In.
#if TILE_WARP_LANES == 64
template <typename In>
using WaveProduct = gfx9::Mfma<In>;
#else
template <typename In>
using WaveProduct = gfx11::Wmma<In>;
#endif

// The layout of a tile in LDS: rows along k. Padding puts the same k of different rows into different banks.
template <typename T, int Rows, int TileK>
struct RowTile {
  static constexpr bool kAlongK = true;
  static constexpr int kPitch = TileK * sizeof(T) + kGemmLinePad, kBytes = Rows * kPitch;
  __device__ static uint32_t place(uint32_t row, uint32_t k) { return row * kPitch + k * sizeof(T); }
};

}  // namespace heddle::tile::cuda
