// The emulator's replacement for tile/arch/gfx9/mfma.h: lanes exchange their operands.
#pragma once

#include "tile/arch/sm80/cvt.h"
#include "tile/core/types.h"

namespace heddle::tile::gfx9 {

inline float mfma_element(half x) {
  return cuda::half_to_float(x.bits);
}
inline float mfma_element(bfloat x) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(x.bits) << 16);
}
inline float mfma_element(float x) {
  return x;
}

template <typename In>
struct Mfma {
  using Piece = uint_t<sizeof(In) == 4 ? 4 : 8>;
  static constexpr int kLane = sizeof(In) == 4 ? 1 : 4, kK = 4 * kLane;

  static void issue(float (&d)[4], Piece a, Piece b, HEDDLE_PLACE) {
    struct Elements {
      In x[kLane];
    };
    const auto collect = [&](uint64_t bits) {
      return heddle_emulated_api->collect(heddle::emulated::Collective::kMma, ~uint64_t{0}, bits, place);
    };
    // Values may be read until the lane has called two more collectives.
    const uint64_t *of_a = collect(a).values, *of_b = collect(b).values;
    const uint32_t lane = heddle_emulated_thread->linear % 64;
    for (uint32_t i = 0; i < 4; ++i) {
      for (uint32_t part = 0; part < 4; ++part) {
        const auto row = __builtin_bit_cast(Elements, static_cast<Piece>(of_a[lane / 16 * 4 + i + 16 * part]));
        const auto column = __builtin_bit_cast(Elements, static_cast<Piece>(of_b[lane % 16 + 16 * part]));
        for (int k = 0; k < kLane; ++k) d[i] += mfma_element(row.x[k]) * mfma_element(column.x[k]);
      }
    }
  }
};

}  // namespace heddle::tile::gfx9
