#pragma once

#include <array>
#include <cstdint>

// The CUDA calls that the collector observes: launches, graph launches, copies, memsets, synchronisations, allocations.
// The numbers are from cupti_driver_cbid.h and cupti_runtime_cbid.h. New CUDA versions add numbers but never change
// them. An older CUPTI rejects numbers that it does not know, which is harmless. Where a call has two numbers, the
// second is its variant for the per-thread default stream.
namespace heddle::profile::cupti {

inline constexpr std::array<uint32_t, 71> kDriverCalls = {
    307, 442, 477, 478, 480, 652, 653,  // cuLaunchKernel, CooperativeKernel, ...MultiDevice, KernelEx
    514, 515,                           // cuGraphLaunch
    276, 397, 278, 398, 280, 399,       // cuMemcpyHtoD, DtoH, DtoD
    277, 421, 279, 422, 281, 423,       // asynchronous variants of these
    305, 408, 306, 418,                 // cuMemcpy, Async
    287, 405, 288, 406, 289, 424,       // cuMemcpy2D, Unaligned, Async
    290, 407, 291, 425,                 // cuMemcpy3D, Async
    318, 409, 319, 426, 321, 427,       // cuMemcpyPeer, Async, 3DPeerAsync
    776, 777, 796, 797,                 // cuMemcpyBatchAsync
    249, 411, 250, 412, 251, 413,       // cuMemsetD8, D16, D32
    216, 428, 218, 429, 220, 430,       // asynchronous variants of these
    17,  800, 126, 440, 121,            // cuCtxSynchronize, StreamSynchronize, EventSynchronize
    243, 245, 371, 598, 599, 600, 601,  // cuMemAlloc, Free, AllocManaged, AllocAsync, FreeAsync
    611, 612,                           // cuMemAllocFromPoolAsync
};

inline constexpr std::array<uint32_t, 49> kRuntimeCalls = {
    211, 214, 269, 270, 430, 431, 505, 506,  // cudaLaunchKernel, CooperativeKernel, KernelExC, __cudaLaunchKernel
    311, 312,                                // cudaGraphLaunch
    31,  215, 41,  225,                      // cudaMemcpy, Async
    32,  216, 44,  228,                      // cudaMemcpy2D, Async
    144, 245, 145, 246,                      // cudaMemcpy3D, Async
    160, 161,                                // cudaMemcpyPeer, Async
    39,  223, 40,  224, 47,  231, 48,  232,  // cudaMemcpyToSymbol, FromSymbol, Async
    482, 483, 509, 510,                      // cudaMemcpyBatchAsync
    49,  233, 51,  235,                      // cudaMemset, Async
    165, 131, 239, 137,                      // cudaDeviceSynchronize, StreamSynchronize, EventSynchronize
    20,  22,  206, 373, 375,                 // cudaMalloc, Free, MallocManaged, MallocAsync, FreeAsync
};

}  // namespace heddle::profile::cupti
