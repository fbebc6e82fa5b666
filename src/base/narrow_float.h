#pragma once

#include <bit>
#include <cstdint>

// Conversions between f32 and 16-bit floats without branches, so that a loop over many is vectorised. They agree with
// encode_float() and decode_float().
namespace heddle {

inline uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16, quiet = (bits >> 16) | 0x40;
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

// Rounds to nearest even, without branches, so that many are converted at a time. Normal results drop 13 bits of the
// mantissa and move the exponent's bias; for subnormal ones adding 0.5 makes the f32 adder round at the right bit.
inline uint16_t to_f16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
  const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  const uint32_t subnormal = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f);
  const uint32_t normal = (magnitude + 0xfff + ((magnitude >> 13) & 1) - 0x38000000) >> 13;
  uint32_t result = magnitude < 0x38800000 ? subnormal : normal;
  result = magnitude >= 0x477ff000 ? 0x7c00 : result;  // 65520 rounds to infinity
  result = magnitude > 0x7f800000 ? 0x7e00 : result;
  return static_cast<uint16_t>(sign | result);
}

inline float from_bf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// Moves the exponent's bias by a multiplication, which also normalises subnormal numbers; infinities and NaN apart.
inline float from_f16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fff) << 13;
  const float finite = std::bit_cast<float>(magnitude) * 0x1p112f;
  const uint32_t value = (bits & 0x7c00) == 0x7c00 ? magnitude | 0x7f800000 : std::bit_cast<uint32_t>(finite);
  return std::bit_cast<float>(sign | value);
}

}  // namespace heddle
