// Descriptors for the shared-memory operands of the warpgroup matrix instruction (wgmma), and the types of its
// accumulators.
#pragma once

#include "tile/arch/sm90/convert.h"

namespace heddle::tile::sm90 {

// Returns the descriptor of an operand in shared memory. `address` is a shared-memory address and a multiple of 1024.
// Rows are 128 bytes long and swizzled. If `k_major`, a row contains elements along k, and groups of eight rows are
// 1024 bytes apart. Otherwise the operand consists of strips of 64 elements along m or n, `strip_bytes` apart.
__device__ inline uint64_t make_smem_descriptor(uint32_t address, bool k_major, uint32_t strip_bytes) {
  constexpr uint64_t kGroup = 1024 >> 4, kSwizzle128 = 1;
  const uint64_t leading = k_major ? 1 : strip_bytes >> 4;
  return static_cast<uint64_t>((address & 0x3FFFF) >> 4) | leading << 16 | kGroup << 32 | kSwizzle128 << 62;
}
// Tells the compiler that x has the same value in all threads of the warp. Values computed from the result are then
// kept in uniform registers instead of per-thread registers; wgmma reads descriptors from uniform registers.
template <typename T>
__device__ inline T warp_uniform(T x) {
  return __shfl_sync(0xffffffffu, x, 0);
}

template <typename In>
struct accumulator {
  using type = float;
};
template <>
struct accumulator<int8_t> {
  using type = int32_t;
};
template <>
struct accumulator<uint8_t> {
  using type = int32_t;
};
template <typename In>
using accumulator_t = typename accumulator<In>::type;

}  // namespace heddle::tile::sm90
