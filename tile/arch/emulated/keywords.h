// Definitions for compiling CUDA C++ with the host's compiler: keywords, built-in variables and entry points of
// kernels.
#pragma once

#define __CUDACC__ 1
#if defined(TILE_WARP_LANES)
#define HEDDLE_LANES TILE_WARP_LANES
#else
#define HEDDLE_LANES 32
#endif

#include "tile/arch/emulated/abi.h"

// Instrumented units (-fsanitize=thread) report their accesses to the emulator, which finds races.
#if defined(__SANITIZE_THREAD__)
#define HEDDLE_REPORTS_ACCESSES true
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HEDDLE_REPORTS_ACCESSES true
#endif
#endif
#if defined(HEDDLE_REPORTS_ACCESSES)
#define HEDDLE_UNREPORTED __attribute__((no_sanitize("thread"), noinline))
#else
#define HEDDLE_REPORTS_ACCESSES false
#define HEDDLE_UNREPORTED
#endif

extern "C" {
__attribute__((visibility("hidden"))) heddle::emulated::ThreadInfo* heddle_emulated_thread = nullptr;
__attribute__((visibility("hidden"))) const heddle::emulated::Api* heddle_emulated_api = nullptr;
__attribute__((visibility("default"))) extern const heddle::emulated::ModuleInfo heddle_emulated_module = {
    heddle::emulated::kAbi, HEDDLE_LANES, HEDDLE_REPORTS_ACCESSES, &heddle_emulated_thread, &heddle_emulated_api};
}

#define __device__
#define __host__
#define __global__ __attribute__((noinline))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __grid_constant__
#define __constant__ static
#define __align__(n) __attribute__((aligned(n)))
// For `extern __shared__ T name[]`. No unit defines the symbol. The emulator makes references to the symbol refer to
// the block's shared memory. Static shared variables do not compile.
#define __shared__ __attribute__((weak))

#define threadIdx (::heddle_emulated_thread->thread_index)
#define blockIdx (::heddle_emulated_thread->block->block_index)
#define blockDim (::heddle_emulated_thread->block->block_dim)
#define gridDim (::heddle_emulated_thread->block->grid_dim)
inline constexpr int warpSize = HEDDLE_LANES;

// The handler that code compiled with -fsanitize=alignment calls (jit/cuda/emulated.cc). The handler does not return,
// since a GPU rejects addresses that are not multiples of the access size. The function's name and the layout of the
// structure are those of the compilers' sanitizer library, which is not linked.
struct HeddleMisaligned {
  const char* file;
  uint32_t line, column;
  const void* type;
  uint8_t log_of_alignment, kind;
};
extern "C" __attribute__((used, noreturn, visibility("hidden"))) inline void __ubsan_handle_type_mismatch_v1_abort(
    const HeddleMisaligned* at, uint64_t address) {
  heddle_emulated_api->misaligned(address, 1u << at->log_of_alignment, {at->file, at->line});
  __builtin_unreachable();
}

// A default argument with the source location of the call.
#define HEDDLE_PLACE ::heddle::emulated::Place place = {__builtin_FILE(), static_cast<uint32_t>(__builtin_LINE())}

namespace heddle::emulated {

template <uint32_t... I>
struct Indices {};
template <uint32_t N, uint32_t... I>
struct MakeIndices : MakeIndices<N - 1, N - 1, I...> {};
template <uint32_t... I>
struct MakeIndices<0, I...> {
  using type = Indices<I...>;
};
template <typename T>
struct remove_const {
  using type = T;
};
template <typename T>
struct remove_const<const T> {
  using type = T;
};

// Calls a kernel with the argument pointers of a launch.
template <auto Kernel>
struct Entry;
template <typename... Args, void (*Kernel)(Args...)>
struct Entry<Kernel> {
  static constexpr uint32_t kBytes[sizeof...(Args) + 1] = {sizeof(Args)..., 0};
  static constexpr uint32_t kCount = sizeof...(Args);
  template <uint32_t... I>
  static void call(void** arguments, Indices<I...>) {
    Kernel(*static_cast<typename remove_const<Args>::type*>(arguments[I])...);
  }
  static void run(void** arguments) { call(arguments, typename MakeIndices<sizeof...(Args)>::type{}); }
};
constexpr uint32_t first_of(uint32_t x = 0, uint32_t = 0, uint32_t = 0) {
  return x;
}
constexpr Dim dim_of() {
  return {0, 0, 0};
}
constexpr Dim dim_of(uint32_t x, uint32_t y = 1, uint32_t z = 1) {
  return {x, y, z};
}

}  // namespace heddle::emulated

// Defines the kernel information of kernel NAME for the emulator. BOUNDS and CLUSTER are the parenthesised arguments of
// the kernel's __launch_bounds__ and __cluster_dims__, or () if the kernel lacks the attribute.
// clang-format off
#define HEDDLE_EMULATED_KERNEL(NAME, BOUNDS, CLUSTER)                                                          \
  extern "C" {                                                                                                 \
  __attribute__((visibility("default"))) extern const ::heddle::emulated::KernelInfo heddle_kernel_##NAME = {  \
      &::heddle::emulated::Entry<&NAME>::run, ::heddle::emulated::Entry<&NAME>::kBytes,                        \
      ::heddle::emulated::Entry<&NAME>::kCount, ::heddle::emulated::first_of BOUNDS,                           \
      ::heddle::emulated::dim_of CLUSTER};                                                                     \
  }
// clang-format on
