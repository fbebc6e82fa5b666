// The keywords and built-in variables of CUDA C++ in terms of clang's attributes and builtins, for AMD GPUs. Names that
// HIP's own headers define, which hiprtc includes by itself, are replaced.
#pragma once

#include <stdint.h>

#define TILE_HIP 1
#define TILE_CUDA 1
#define __CUDACC__ 1
#define TILE_WARP_LANES __AMDGCN_WAVEFRONT_SIZE

#undef __device__
#undef __host__
#undef __global__
#undef __shared__
#undef __constant__
#undef __forceinline__
#undef __noinline__
#undef __align__
#undef __grid_constant__
#undef __launch_bounds__
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
// __launch_bounds__(threads) or __launch_bounds__(threads, blocks): the second argument is the number of blocks that a
// compute unit holds at once, from which follow the waves of each of its four SIMDs.
#define TILE_BOUNDS_ONE(threads) __attribute__((amdgpu_flat_work_group_size(threads, threads)))
#define TILE_BOUNDS_TWO(threads, blocks)                        \
  __attribute__((amdgpu_flat_work_group_size(threads, threads), \
                 amdgpu_waves_per_eu(                           \
                     (threads) * (blocks) <= 4 * TILE_WARP_LANES ? 1 : (threads) * (blocks) / (4 * TILE_WARP_LANES))))
#define TILE_BOUNDS_OF(one, two, name, ...) name
#define __launch_bounds__(...) TILE_BOUNDS_OF(__VA_ARGS__, TILE_BOUNDS_TWO, TILE_BOUNDS_ONE, )(__VA_ARGS__)

namespace heddle::hip {

struct Dim {
  uint32_t x, y, z;
};
__device__ inline Dim thread_index() {
  return {__builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(), __builtin_amdgcn_workitem_id_z()};
}
__device__ inline Dim block_index() {
  return {__builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(), __builtin_amdgcn_workgroup_id_z()};
}
__device__ inline Dim block_dim() {
  return {__builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(),
          __builtin_amdgcn_workgroup_size_z()};
}
__device__ inline Dim grid_dim() {
  return {__builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(),
          __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y(),
          __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z()};
}

struct alignas(8) Float2 {
  float x, y;
};
struct alignas(16) Float4 {
  float x, y, z, w;
};

}  // namespace heddle::hip

#define float2 ::heddle::hip::Float2
#define float4 ::heddle::hip::Float4
#define threadIdx (::heddle::hip::thread_index())
#define blockIdx (::heddle::hip::block_index())
#define blockDim (::heddle::hip::block_dim())
#define gridDim (::heddle::hip::grid_dim())
