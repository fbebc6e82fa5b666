// How the lanes of a warp hold 16 rows of scores and results, and the roles of operands (warps.h).
#pragma once

#include "tile/arch/cuda/builtins.h"
#include "tile/core/types.h"

namespace heddle::tile::cuda {

// A lane holds 4 elements of every kStride columns: kRun neighbouring columns, the first of them column(), of each of
// its kRows rows, which are row() and row() + 8. The numbers of the four lanes with the same rows differ in two bits,
// the lower of which is kNear.
struct MmaLanes {  // of Mma and Wgmma
  static constexpr int kLanes = 32, kRows = 2, kRun = 2, kStride = 8, kNear = 1;
  __device__ static int row() { return static_cast<int>(threadIdx.x % kLanes / 4); }
  __device__ static int column() { return static_cast<int>(threadIdx.x % 4 * kRun); }
};
struct MfmaLanes {  // of gfx9::Mfma, with the columns as rows of the instruction's result
  static constexpr int kLanes = 64, kRows = 1, kRun = 4, kStride = 16, kNear = 16;
  __device__ static int row() { return static_cast<int>(threadIdx.x % 16); }
  __device__ static int column() { return static_cast<int>(threadIdx.x % kLanes / 16 * kRun); }
};

enum class AttentionRole : uint8_t { kQ, kK, kV };

}  // namespace heddle::tile::cuda
