// CUDA's intrinsics that the tile library uses, for AMD GPUs. Exchanges and votes involve all lanes of a wave, which
// run in step, so their masks are ignored.
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
// Whether the predicate holds for any thread of the block.
__device__ inline bool sync_block_or(bool predicate) {
  __shared__ int any;
  sync_block();
  if (__builtin_amdgcn_workitem_id_x() == 0) any = 0;
  sync_block();
  if (predicate) any = 1;
  sync_block();
  return any != 0;
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
// The active lanes for which the predicate holds.
__device__ __forceinline__ uint64_t ballot(bool predicate) {
#if TILE_WARP_LANES == 64
  return __builtin_amdgcn_ballot_w64(predicate);
#else
  return __builtin_amdgcn_ballot_w32(predicate);
#endif
}

// An exchange involves the lanes of its mask: those of a whole wave, or, with a mask of 32 bits, those of the half of
// the wave that the calling thread is in. They run in step, so that only the type of the mask matters.
template <typename Mask>
struct Lanes;
template <>
struct Lanes<uint64_t> {
  static constexpr int count = 64;
  __device__ static int first() { return 0; }
  __device__ static uint64_t of(uint64_t lanes) { return lanes; }
};
template <>
struct Lanes<uint32_t> {
  static constexpr int count = 32;
  __device__ static int first() { return lane() & 32; }
  __device__ static uint32_t of(uint64_t lanes) { return static_cast<uint32_t>(lanes >> first()); }
};

__device__ __forceinline__ uint32_t word_of_lane(uint32_t word, int from) {
  return static_cast<uint32_t>(__builtin_amdgcn_ds_bpermute(from * 4, static_cast<int>(word)));
}
// Most distances have an instruction that needs no address.
__device__ __forceinline__ uint32_t word_of_xor(uint32_t word, int by) {
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

template <typename T, typename F>
__device__ __forceinline__ T by_words(T x, F f) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  if constexpr (sizeof(T) == 4) {
    return __builtin_bit_cast(T, f(__builtin_bit_cast(uint32_t, x)));
  } else {
    const uint64_t bits = __builtin_bit_cast(uint64_t, x);
    const uint32_t low = f(static_cast<uint32_t>(bits)), high = f(static_cast<uint32_t>(bits >> 32));
    return __builtin_bit_cast(T, low | static_cast<uint64_t>(high) << 32);
  }
}
template <typename Mask, typename T>
__device__ __forceinline__ T shuffle(Mask, T x, int from) {
  const int source = Lanes<Mask>::first() + (from & (Lanes<Mask>::count - 1));
  return by_words(
      x, [&](uint32_t word) __attribute__((always_inline)) { return word_of_lane(word, source); });
}
template <typename Mask, typename T>
__device__ __forceinline__ T shuffle_xor(Mask, T x, int by) {
  return by_words(
      x, [&](uint32_t word) __attribute__((always_inline)) { return word_of_xor(word, by); });
}
template <typename Mask, typename T>
__device__ __forceinline__ T shuffle_up(Mask, T x, int by, int width = Lanes<Mask>::count) {
  const int own = lane(), from = own - by;
  if (from < (own & ~(width - 1))) return by_words(x, [&](uint32_t word) { return word_of_lane(word, own); });
  return by_words(
      x, [&](uint32_t word) __attribute__((always_inline)) { return word_of_lane(word, from); });
}
template <typename Mask>
__device__ __forceinline__ Mask ballot_of(Mask, bool predicate) {
  return Lanes<Mask>::of(ballot(predicate));
}
template <typename Mask>
__device__ __forceinline__ bool all_of(Mask mask, bool predicate) {
  return ballot_of(mask, !predicate) == 0;
}
// The lanes with the same value. Each turn takes those with the value of the first lane that is left.
template <typename Mask>
__device__ __forceinline__ Mask match_any(Mask, uint32_t value) {
  for (;;) {
    if (value == static_cast<uint32_t>(__builtin_amdgcn_readfirstlane(static_cast<int>(value)))) {
      return Lanes<Mask>::of(ballot(true));
    }
  }
}

template <typename T>
__device__ __forceinline__ T add_atomically(T* to, T value) {
  return __hip_atomic_fetch_add(to, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

template <typename T>
__device__ __forceinline__ T exchange_atomically(T* to, T value) {
  return __hip_atomic_exchange(to, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// A product that is not contracted to a fused multiply-add.
template <typename T>
__device__ __forceinline__ T multiply_rounded(T x, T y) {
#pragma clang fp contract(off)
  return x * y;
}

}  // namespace heddle::hip

// HIP's headers may define these names, too.
#define TILE_HIP_FUNCTION(RESULT, NAME, PARAMETERS, VALUE)         \
  __device__ __forceinline__ RESULT heddle_hip_##NAME PARAMETERS { \
    return VALUE;                                                  \
  }
TILE_HIP_FUNCTION(uint32_t, float_as_uint, (float x), heddle::hip::bits_as<uint32_t>(x))
TILE_HIP_FUNCTION(int32_t, float_as_int, (float x), heddle::hip::bits_as<int32_t>(x))
TILE_HIP_FUNCTION(float, uint_as_float, (uint32_t x), heddle::hip::bits_as<float>(x))
TILE_HIP_FUNCTION(float, int_as_float, (int32_t x), heddle::hip::bits_as<float>(x))
TILE_HIP_FUNCTION(void, syncthreads, (), heddle::hip::sync_block())
TILE_HIP_FUNCTION(bool, syncthreads_or, (bool predicate), heddle::hip::sync_block_or(predicate))
TILE_HIP_FUNCTION(void, syncwarp, (), heddle::hip::sync_wave())
TILE_HIP_FUNCTION(void, threadfence, (), heddle::hip::fence_device())
TILE_HIP_FUNCTION(int, popc, (uint32_t x), __builtin_popcount(x))
TILE_HIP_FUNCTION(int, ffs, (uint32_t x), __builtin_ffs(static_cast<int>(x)))
// Of the selector, only the number of a byte counts: no caller asks for copies of a sign.
TILE_HIP_FUNCTION(uint32_t, byte_perm, (uint32_t a, uint32_t b, uint32_t s),
                  __builtin_amdgcn_perm(b, a, (s & 7) | (s & 0x70) << 4 | (s & 0x700) << 8 | (s & 0x7000) << 12))
TILE_HIP_FUNCTION(uint32_t, funnelshift_r, (uint32_t low, uint32_t high, uint32_t by),
                  __builtin_amdgcn_alignbit(high, low, by))
TILE_HIP_FUNCTION(float, fmul_rn, (float x, float y), heddle::hip::multiply_rounded(x, y))
TILE_HIP_FUNCTION(double, dmul_rn, (double x, double y), heddle::hip::multiply_rounded(x, y))
#undef TILE_HIP_FUNCTION

#define __float_as_uint heddle_hip_float_as_uint
#define __float_as_int heddle_hip_float_as_int
#define __uint_as_float heddle_hip_uint_as_float
#define __int_as_float heddle_hip_int_as_float
#define __syncthreads heddle_hip_syncthreads
#define __syncthreads_or heddle_hip_syncthreads_or
#define __syncwarp heddle_hip_syncwarp
#define __threadfence heddle_hip_threadfence
#define __popc heddle_hip_popc
#define __ffs heddle_hip_ffs
#define __shfl_sync heddle::hip::shuffle
#define __shfl_xor_sync heddle::hip::shuffle_xor
#define __shfl_up_sync heddle::hip::shuffle_up
#define __ballot_sync heddle::hip::ballot_of
#define __all_sync heddle::hip::all_of
#define __match_any_sync heddle::hip::match_any
#define __byte_perm heddle_hip_byte_perm
#define __funnelshift_r heddle_hip_funnelshift_r
#define __fmul_rn heddle_hip_fmul_rn
#define __dmul_rn heddle_hip_dmul_rn
#define atomicAdd heddle::hip::add_atomically
#define atomicExch heddle::hip::exchange_atomically
#define fmaxf __builtin_fmaxf
#define fmaf __builtin_fmaf
