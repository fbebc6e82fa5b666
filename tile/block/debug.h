// Checks and prints for debugging a kernel.
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

// The coordinates of an element as text: "( 3, 12)". Each coordinate is padded to the width of the largest one on its
// axis. One call prints a whole line, so that lines of different threads do not mix.
struct index_text {
  char text[kMaxRank * 12 + 4];
  int length = 0;

  TILE_INLINE void add(char c) {
    text[length++] = c;
    text[length] = 0;
  }
  TILE_INLINE void add(int coordinate, int largest) {
    int divisor = 1;
    while (largest / divisor >= 10) divisor *= 10;
    for (bool blank = true; divisor > 0; divisor /= 10) {
      const int digit = coordinate / divisor % 10;
      blank = blank && digit == 0 && divisor > 1;
      add(blank ? ' ' : static_cast<char>('0' + digit));
    }
  }
};
template <typename L>
TILE_INLINE index_text text_of(const Place& here, int r) {
  index_text index;
  index.add('(');
  for (int d = 0; d < L::kRank; ++d) {
    if (d > 0) {
      index.add(',');
      index.add(' ');
    }
    index.add(here.at[d] + L::of_register(r, d), L::size(d) - 1);
  }
  index.add(')');
  return index;
}

template <bool Hex, typename T>
TILE_INLINE void print_one(const char* prefix, const char* index, T x) {
  const unsigned px = blockIdx.x, py = blockIdx.y, pz = blockIdx.z;
  if constexpr (is_pointer<T>) {
    printf("pid (%u, %u, %u) idx %s%s%p\n", px, py, pz, index, prefix, static_cast<const void*>(x));
  } else if constexpr (Hex) {
    const auto bits = static_cast<unsigned long long>(__builtin_bit_cast(uint_t<sizeof(T)>, x));
    printf("pid (%u, %u, %u) idx %s%s0x%0*llx\n", px, py, pz, index, prefix, int(sizeof(T)) * 2, bits);
  } else if constexpr (is_any_float<T>) {
    printf("pid (%u, %u, %u) idx %s%s%f\n", px, py, pz, index, prefix, static_cast<double>(widen(x)));
  } else if constexpr (is_signed<T>) {
    printf("pid (%u, %u, %u) idx %s%s%lld\n", px, py, pz, index, prefix, static_cast<long long>(x));
  } else {
    printf("pid (%u, %u, %u) idx %s%s%llu\n", px, py, pz, index, prefix, static_cast<unsigned long long>(x));
  }
}

}  // namespace detail

// Ends the launch with `message` if an element of `condition` is false where the mask is true.
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

// Prints one line per block (program instance), or one line per element if `x` is a tile.
TILE_INLINE void print(const char* prefix) {
  if (threadIdx.x == 0) printf("pid (%u, %u, %u)%s\n", blockIdx.x, blockIdx.y, blockIdx.z, prefix);
}
template <bool Hex, typename T>
TILE_INLINE void print(const char* prefix, T x) {
  if (threadIdx.x == 0) detail::print_one<Hex>(prefix, "()", x);
}
template <bool Hex, typename T, typename L>
TILE_INLINE void print(const char* prefix, const Tile<T, L>& x) {
  const Place here = L::here();
  if (!L::owner()) return;
#pragma unroll 1
  for (int r = 0; r < L::kRegisters; ++r) {
    if (L::inside(here, r)) detail::print_one<Hex>(prefix, detail::text_of<L>(here, r).text, x.v[r]);
  }
}

// Returns the bits of an element as an unsigned integer of its size, for inline assembly.
template <typename T>
TILE_INLINE auto bits_of(T x) {
  return __builtin_bit_cast(uint_t<sizeof(T)>, x);
}

}  // namespace heddle::tile::block
