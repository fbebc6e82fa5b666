#pragma once

#include <cstdint>

namespace heddle {

// ceil_div() is a / b, rounded up; round_up() is a, rounded up to a multiple of b. a is not negative, b is positive.
constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
constexpr int64_t round_up(int64_t a, int64_t b) {
  return ceil_div(a, b) * b;
}

}  // namespace heddle
