#pragma once

#include <cstdint>

namespace heddle {

// ceil_div() returns a / b, rounded up. round_up() returns a, rounded up to a multiple of b. Both require a >= 0 and b
// > 0.
constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
constexpr int64_t round_up(int64_t a, int64_t b) {
  return ceil_div(a, b) * b;
}

}  // namespace heddle
