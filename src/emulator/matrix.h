#pragma once

#include "emulator/scheduler.h"

namespace heddle::emulator {

// Warp-wide instructions on matrices in registers. Every lane of the warp calls these functions.
void mma(Scheduler& s, const emulated::MmaCall& call, Place place);
void load_matrices(Scheduler& s, uint32_t* words, uint32_t count, bool transposed, uint32_t address, Place place);
void store_matrices(Scheduler& s, const uint32_t* words, uint32_t count, bool transposed, uint32_t address,
                    Place place);

constexpr uint32_t element_bytes(emulated::Element type) {
  switch (type) {
    case emulated::Element::kTf32:
      return 4;
    case emulated::Element::kHalf:
    case emulated::Element::kBfloat:
      return 2;
    default:
      return 1;
  }
}
constexpr bool is_integer(emulated::Element type) {
  return type == emulated::Element::kInt8 || type == emulated::Element::kUint8;
}

// Decodes the elements in the 16 bytes at `from` and stores them to `to`. Returns the number of elements.
uint32_t decode(emulated::Element type, const uint8_t* from, float* to);
uint32_t decode(emulated::Element type, const uint8_t* from, int32_t* to);

}  // namespace heddle::emulator
