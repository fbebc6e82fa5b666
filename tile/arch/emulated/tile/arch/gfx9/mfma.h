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
      return heddle_emulated_api->collect(heddle::emulated::Collective::kMma, ~uint64_t{0}, bits, place).values;
    };
    const auto elements = [](uint64_t bits) { return __builtin_bit_cast(Elements, static_cast<Piece>(bits)); };
    const uint32_t lane = heddle_emulated_thread->linear % 64;
    // Other lanes may go on to the next exchange but one while this lane reads: it keeps what it needs of the first.
    Elements rows[4][4];
    const uint64_t* const of_a = collect(a);
    for (uint32_t i = 0; i < 4; ++i) {
      for (uint32_t part = 0; part < 4; ++part) rows[i][part] = elements(of_a[lane / 16 * 4 + i + 16 * part]);
    }
    const uint64_t* const of_b = collect(b);
    for (uint32_t part = 0; part < 4; ++part) {
      const Elements column = elements(of_b[lane % 16 + 16 * part]);
      for (uint32_t i = 0; i < 4; ++i) {
        for (int k = 0; k < kLane; ++k) d[i] += mfma_element(rows[i][part].x[k]) * mfma_element(column.x[k]);
      }
    }
  }
};

}  // namespace heddle::tile::gfx9
