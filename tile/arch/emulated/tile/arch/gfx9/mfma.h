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
template <typename T>
T mfma_element(T x) {
  return x;
}

template <typename In>
struct Mfma {
  static constexpr bool kIsByte = sizeof(In) == 1, kIsDouble = is_same<In, double>;
  using Piece = uint_t<is_same<In, float> ? 4 : 8>;
  using Sum = decltype([] {
    if constexpr (kIsByte) {
      return int32_t{};
    } else if constexpr (kIsDouble) {
      return double{};
    } else {
      return float{};
    }
  }());
  static constexpr int kLanes = 64, kParts = 4, kSums = 4, kLane = sizeof(Piece) / sizeof(In), kK = kParts * kLane;

  static int row_of(int line) { return kIsDouble ? line % 4 * 4 + line / 4 : line; }

  static void issue(Sum (&d)[4], Piece a, Piece b, HEDDLE_PLACE) {
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
      const uint32_t line = kIsDouble ? 4 * i + lane / 16 : lane / 16 * 4 + i;
      for (uint32_t part = 0; part < 4; ++part) rows[i][part] = elements(of_a[line + 16 * part]);
    }
    const uint64_t* const of_b = collect(b);
    for (uint32_t part = 0; part < 4; ++part) {
      const Elements column = elements(of_b[lane % 16 + 16 * part]);
      for (uint32_t i = 0; i < 4; ++i) {
        for (int k = 0; k < kLane; ++k) d[i] += Sum{mfma_element(rows[i][part].x[k])} * mfma_element(column.x[k]);
      }
    }
  }
};

}  // namespace heddle::tile::gfx9
