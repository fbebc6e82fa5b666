// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): random numbers as a function of a
// seed and an index. The numbers are the same on every target.
#pragma once

#include "tile/arch/vec.h"

namespace heddle::tile {

struct philox_block {
  uint32_t word[4];
};

TILE_INLINE philox_block philox(uint64_t seed, uint64_t index) {
  philox_block x{{uint32_t(index), uint32_t(index >> 32), 0, 0}};
  uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t(0xD2511F53) * x.word[0], b = uint64_t(0xCD9E8D57) * x.word[2];
    x = {{uint32_t(b >> 32) ^ x.word[1] ^ k0, uint32_t(b), uint32_t(a >> 32) ^ x.word[3] ^ k1, uint32_t(a)}};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return x;
}

// Returns a uniform random number in [0, 1). `Bits` is the number of random bits, as many as T resolves in this
// interval.
template <typename T, int Bits>
TILE_INLINE T philox_uniform(uint64_t seed, uint64_t index) {
  const philox_block x = philox(seed, index);
  const uint64_t word = uint64_t(x.word[0]) << 32 | (Bits > 32 ? x.word[1] : 0);
  return T(word >> (64 - Bits)) * (T(1) / T(uint64_t(1) << Bits));
}

// Returns a normally distributed random number with mean 0 and variance 1 (Box and Muller).
template <typename T, int Bits>
TILE_INLINE T philox_normal(uint64_t seed, uint64_t index) {
  const philox_block x = philox(seed, index);
  const uint64_t first = uint64_t(x.word[0]) << 32 | (Bits > 32 ? x.word[1] : 0);
  const uint64_t second = Bits > 32 ? uint64_t(x.word[2]) << 32 | x.word[3] : uint64_t(x.word[1]) << 32;
  constexpr double unit = 1.0 / double(uint64_t(1) << Bits);
  const double u = double(first >> (64 - Bits)) * unit, v = double(second >> (64 - Bits)) * unit;
  return T(__builtin_sqrt(-2 * TILE_MATH(log)(u + unit)) * TILE_MATH(cos)(6.283185307179586477 * v));
}

}  // namespace heddle::tile
