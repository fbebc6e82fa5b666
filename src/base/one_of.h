#pragma once

namespace heddle {

// True if x equals one of the values.
template <typename T, typename... Values>
constexpr bool is_one_of(T x, Values... values) {
  return ((x == values) || ...);
}

}  // namespace heddle
