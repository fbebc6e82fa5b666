#pragma once

#include <cstdint>

namespace heddle {

// Converts an integer to a double that will then be rounded to a narrower float. If the double cannot hold the integer
// exactly, rounds to odd. The double is then on the same side of each tie of the narrower float as the integer, so the
// second rounding is correct.
inline double to_odd_double(uint64_t magnitude) {
  constexpr uint64_t kDropped = 0x7ff;
  if (magnitude >> 53 != 0 && (magnitude & kDropped) != 0) magnitude = (magnitude & ~kDropped) | (kDropped + 1);
  return static_cast<double>(magnitude);
}
inline double to_odd_double(int64_t value) {
  const auto bits = static_cast<uint64_t>(value);
  return value < 0 ? -to_odd_double(0 - bits) : to_odd_double(bits);
}

}  // namespace heddle
