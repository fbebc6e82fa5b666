#pragma once

#include <cstdint>

namespace heddle::emulator {

enum class Swizzle : uint8_t { kNone, k32, k64, k128 };

// The content of the 128 bytes that cuTensorMapEncodeTiled() and cuTensorMapEncodeIm2col() write. The layout is private
// to the emulator: callers of these functions treat the bytes as opaque.
struct TensorMap {
  static constexpr uint32_t kMagic = 0x48444c4d, kWindows = 0x48444c57;
  uint32_t magic;
  uint8_t rank, element_bytes, fill_nan;
  Swizzle swizzle;
  uint64_t base;
  uint64_t extents[5];  // in elements, innermost first
  uint64_t strides[5];  // in bytes, one per dimension
  uint16_t box[5];      // in elements
  uint16_t element_strides[5];
  int32_t type;  // the driver's code for the element type
  // For im2col maps (kWindows) only: the lower and upper corners of the pixel box, for width and height. The extents of
  // `box` are then channels and pixels.
  int16_t first[2], last[2];
};
static_assert(sizeof(TensorMap) <= 128);

}  // namespace heddle::emulator
