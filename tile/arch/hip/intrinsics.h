// CUDA's intrinsics that the tile library uses, for AMD GPUs. Exchanges and votes involve all lanes of a wave, which run
// in step, so their masks are ignored.
#pragma once

#include "tile/arch/hip/keywords.h"

namespace heddle::hip {

template <typename To, typename From>
__device__ __forceinline__ To bits_as(From from) {
  return __builtin_bit_cast(To, from);
}

// The barrier orders accesses to LDS and to global memory within the block.
__device__ __forceinline__ void sync_block() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
__device__ __forceinline__ void sync_wave() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
__device__ __forceinline__ void fence_device() {
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
}

__device__ __forceinline__ int lane() {
#if TILE_WARP_LANES == 64
  return static_cast<int>(__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u)));
#else
  return static_cast<int>(__builtin_amdgcn_mbcnt_lo(~0u, 0u));
#endif
}
__device__ __forceinline__ uint32_t word_of_lane(uint32_t word, int from) {
  return static_cast<uint32_t>(__builtin_amdgcn_ds_bpermute(from * 4, static_cast<int>(word)));
}
__device__ __forceinline__ uint32_t word_of_xor(uint32_t word, int by) {
  // Within 32 lanes, a swizzle takes the pattern as an immediate.
  const int own = static_cast<int>(word);
  if (__builtin_constant_p(by)) {
    switch (by) {
      case 1:
        return static_cast<uint32_t>(__builtin_amdgcn_mov_dpp(own, 0xB1, 0xF, 0xF, true));  // quad_perm 1, 0, 3, 2
      case 2:
        return static_cast<uint32_t>(__builtin_amdgcn_mov_dpp(own, 0x4E, 0xF, 0xF, true));  // quad_perm 2, 3, 0, 1
      case 4:
        return static_cast<uint32_t>(__builtin_amdgcn_ds_swizzle(own, 0x101F));
      case 8:
        return static_cast<uint32_t>(__builtin_amdgcn_mov_dpp(own, 0x128, 0xF, 0xF, true));  // row_ror 8
      case 16:
        return static_cast<uint32_t>(__builtin_amdgcn_ds_swizzle(own, 0x401F));
      default:
        break;
    }
  }
  return word_of_lane(word, lane() ^ by);
}
__device__ __forceinline__ uint32_t word_of_lower(uint32_t word, int by, int width) {
  const int own = lane(), from = own - by;
  return from < (own & ~(width - 1)) ? word : word_of_lane(word, from);
}
__device__ __forceinline__ bool all_lanes_hold(bool predicate) {
#if TILE_WARP_LANES == 64
  return __builtin_amdgcn_ballot_w64(!predicate) == 0;
#else
  return __builtin_amdgcn_ballot_w32(!predicate) == 0;
#endif
}

template <typename T>
__device__ __forceinline__ T add_atomically(T* to, T value) {
  return __hip_atomic_fetch_add(to, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// A product that is not contracted to a fused multiply-add.
template <typename T>
__device__ __forceinline__ T multiply_rounded(T x, T y) {
#pragma clang fp contract(off)
  return x * y;
}

}  // namespace heddle::hip

// HIP's headers may define these names, too.
#define TILE_HIP_FUNCTION(RESULT, NAME, PARAMETERS, VALUE)        \
  __device__ __forceinline__ RESULT heddle_hip_##NAME PARAMETERS { \
    return VALUE;                                                 \
  }
TILE_HIP_FUNCTION(uint32_t, float_as_uint, (float x), heddle::hip::bits_as<uint32_t>(x))
TILE_HIP_FUNCTION(int32_t, float_as_int, (float x), heddle::hip::bits_as<int32_t>(x))
TILE_HIP_FUNCTION(float, uint_as_float, (uint32_t x), heddle::hip::bits_as<float>(x))
TILE_HIP_FUNCTION(float, int_as_float, (int32_t x), heddle::hip::bits_as<float>(x))
TILE_HIP_FUNCTION(void, syncthreads, (), heddle::hip::sync_block())
TILE_HIP_FUNCTION(void, syncwarp, (), heddle::hip::sync_wave())
TILE_HIP_FUNCTION(void, threadfence, (), heddle::hip::fence_device())
TILE_HIP_FUNCTION(uint32_t, shfl_sync, (uint64_t, uint32_t word, int from), heddle::hip::word_of_lane(word, from))
TILE_HIP_FUNCTION(uint32_t, shfl_xor_sync, (uint64_t, uint32_t word, int by), heddle::hip::word_of_xor(word, by))
TILE_HIP_FUNCTION(uint32_t, shfl_up_sync, (uint64_t, uint32_t word, int by, int width),
                  heddle::hip::word_of_lower(word, by, width))
TILE_HIP_FUNCTION(bool, all_sync, (uint64_t, bool predicate), heddle::hip::all_lanes_hold(predicate))
TILE_HIP_FUNCTION(float, fmul_rn, (float x, float y), heddle::hip::multiply_rounded(x, y))
TILE_HIP_FUNCTION(double, dmul_rn, (double x, double y), heddle::hip::multiply_rounded(x, y))
#undef TILE_HIP_FUNCTION

#define __float_as_uint heddle_hip_float_as_uint
#define __float_as_int heddle_hip_float_as_int
#define __uint_as_float heddle_hip_uint_as_float
#define __int_as_float heddle_hip_int_as_float
#define __syncthreads heddle_hip_syncthreads
#define __syncwarp heddle_hip_syncwarp
#define __threadfence heddle_hip_threadfence
#define __shfl_sync heddle_hip_shfl_sync
#define __shfl_xor_sync heddle_hip_shfl_xor_sync
#define __shfl_up_sync heddle_hip_shfl_up_sync
#define __all_sync heddle_hip_all_sync
#define __fmul_rn heddle_hip_fmul_rn
#define __dmul_rn heddle_hip_dmul_rn
#define atomicAdd heddle::hip::add_atomically
