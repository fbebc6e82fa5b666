// The emulator's replacement for tile/arch/gfx11/wmma.h, with the operands of RDNA 3: lanes exchange them.
#pragma once

#include "tile/arch/gfx9/mfma.h"

namespace heddle::tile::gfx11 {

template <typename In>
struct Wmma {
  static constexpr int kLane = 16, kParts = 1, kLanes = 32, kK = 16, kSums = 8;
  static constexpr int kWords = kLane * sizeof(In) / sizeof(uint64_t), kOfWord = kLane / kWords;
  struct alignas(16) Piece {
    In x[kLane];
  };
  using Sum = float;

  static int row_of(int line) { return line % 2 * 8 + line / 2; }

  static void issue(float (&d)[8], const Piece& a, const Piece& b, HEDDLE_PLACE) {
    struct Elements {
      In x[kOfWord];
    };
    struct Words {
      uint64_t x[kWords];
    };
    const auto collect = [&](uint64_t bits) {
      return heddle_emulated_api->collect(heddle::emulated::Collective::kMma, 0xffffffffu, bits, place).values;
    };
    const uint32_t lane = heddle_emulated_thread->linear % 32;
    const auto words_a = __builtin_bit_cast(Words, a), words_b = __builtin_bit_cast(Words, b);
    for (int word = 0; word < kWords; ++word) {
      // Other lanes may go on to the next exchange but one while this lane reads: it keeps what it needs of the first.
      Elements rows[8];
      const uint64_t* const of_a = collect(words_a.x[word]);
      for (uint32_t i = 0; i < 8; ++i) rows[i] = __builtin_bit_cast(Elements, of_a[2 * i + lane / 16]);
      const auto column = __builtin_bit_cast(Elements, collect(words_b.x[word])[lane % 16]);
      for (uint32_t i = 0; i < 8; ++i) {
        for (int k = 0; k < kOfWord; ++k) {
          d[i] += gfx9::mfma_element(rows[i].x[k]) * gfx9::mfma_element(column.x[k]);
        }
      }
    }
  }
};

}  // namespace heddle::tile::gfx11
