// Checks and prints of a kernel under development.
#pragma once

#include "tile/block/tile.h"

#if !defined(__CUDACC_RTC__)
extern "C" int printf(const char* format, ...);
#endif

namespace heddle::tile::block {

namespace detail {

template <typename T>
TILE_INLINE void fail_at([[maybe_unused]] T message) {
#if defined(HEDDLE_PLACE)
  heddle_emulated_api->fail(message);
#else
  printf("%s, in program (%u, %u, %u)\n", message, blockIdx.x, blockIdx.y, blockIdx.z);
  __trap();
#endif
}

template <bool Hex, typename T>
TILE_INLINE void print_one(const char* prefix, T x) {
  printf("pid (%u, %u, %u) ", blockIdx.x, blockIdx.y, blockIdx.z);
  if constexpr (is_pointer<T>) {
    printf("%s%p\n", prefix, static_cast<const void*>(x));
  } else if constexpr (is_any_float<T>) {
    printf("%s%f\n", prefix, static_cast<double>(widen(x)));
  } else if constexpr (Hex) {
    printf("%s0x%llx\n", prefix, static_cast<unsigned long long>(x));
  } else if constexpr (is_signed<T>) {
    printf("%s%lld\n", prefix, static_cast<long long>(x));
  } else {
    printf("%s%llu\n", prefix, static_cast<unsigned long long>(x));
  }
}

}  // namespace detail

// Ends the launch with this text unless all elements are true where the mask is.
TILE_INLINE void check(const char* message, bool condition, bool mask = true) {
  if (mask && !condition) detail::fail_at(message);
}
template <typename L, typename M = bool>
TILE_INLINE void check(const char* message, const Tile<bool, L>& condition, const M& mask = true) {
  const Place here = L::here();
  bool all = true;
  each_register<L::kRegisters>(
      [&](int r) { all = all && (condition.v[r] || !detail::element(mask, r) || !L::inside(here, r)); });
  if (!all) detail::fail_at(message);
}

// A line for the program, or for each element.
TILE_INLINE void print(const char* prefix) {
  if (threadIdx.x == 0) printf("pid (%u, %u, %u) %s\n", blockIdx.x, blockIdx.y, blockIdx.z, prefix);
}
template <bool Hex, typename T>
TILE_INLINE void print(const char* prefix, T x) {
  if (threadIdx.x == 0) detail::print_one<Hex>(prefix, x);
}
template <bool Hex, typename T, typename L>
TILE_INLINE void print(const char* prefix, const Tile<T, L>& x) {
  const Place here = L::here();
  if (!L::owner()) return;
#pragma unroll 1
  for (int r = 0; r < L::kRegisters; ++r) {
    if (L::inside(here, r)) detail::print_one<Hex>(prefix, x.v[r]);
  }
}

// A small element as a register of a word, for assembly.
template <typename T>
TILE_INLINE auto bits_of(T x) {
  return __builtin_bit_cast(uint_t<sizeof(T)>, x);
}

}  // namespace heddle::tile::block
