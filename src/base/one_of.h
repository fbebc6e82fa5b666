#pragma once

namespace heddle {

// Whether x is one of the values.
template <typename T, typename... Values>
constexpr bool is_one_of(T x, Values... values) {
  return ((x == values) || ...);
}

}  // namespace heddle
