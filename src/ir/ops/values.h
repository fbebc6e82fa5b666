#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "ir/op.h"
#include "tile/core/special.h"

// The values of elementwise ops, from the table of ops. Each function calls use(f), where f computes the op. f captures
// nothing, so it converts to a function pointer. Each function returns false if it has no f for the op.
namespace heddle::ir {

namespace values {

using U = uint64_t;

// Python's %: the result has the sign of the divisor.
inline double floored_mod(double a, double b) {
  const double r = std::fmod(a, b);
  if (r == 0) return std::copysign(r, b);
  return std::signbit(r) != std::signbit(b) ? r + b : r;
}

template <typename T>
T remainder(T a, T b) {
  return b == 0 || (std::is_signed_v<T> && b == T(-1)) ? T(0) : a % b;
}

// Returns a^n, wrapped to the type. For a negative n, returns 1 / a^-n, truncated; division by zero gives 0.
template <typename T>
T power(T a, T n) {
  if constexpr (std::is_signed_v<T>) {
    if (n < 0) return a == 1 ? 1 : a == -1 ? (n % 2 == 0 ? 1 : -1) : 0;
  }
  U result = 1, base = static_cast<U>(a);
  for (U rest = static_cast<U>(n); rest != 0; rest >>= 1) {
    if (rest & 1) result *= base;
    base *= base;
  }
  return static_cast<T>(result);
}

__extension__ typedef __int128 SignedWide;
__extension__ typedef unsigned __int128 UnsignedWide;
template <typename T>
using Wide = std::conditional_t<std::is_signed_v<T>, SignedWide, UnsignedWide>;

template <typename T>
U low_bits(T value, int bits) {
  return static_cast<U>(value) & (~U{0} >> (64 - bits));
}

inline U reversed(U from) {
  U to = 0;
  for (int i = 0; i < 64; ++i, from >>= 1) to = (to << 1) | (from & 1);
  return to;
}

}  // namespace values

// Converts a float to an integer type: rounds toward zero and saturates. NaN becomes 0.
inline int64_t truncated(DType to, double value) {
  if (std::isnan(value)) return 0;
  const int bits = bits_of(to) - is_signed_int(to);  // bits of the magnitude
  const double end = 2.0 * static_cast<double>(uint64_t{1} << (bits - 1));
  const auto most = static_cast<int64_t>(~uint64_t{0} >> (64 - bits));
  if (value >= end) return most;
  if (!is_signed_int(to)) return value <= 0 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(value));
  return value < -end ? -most - 1 : static_cast<int64_t>(value);
}

// Calls use(f), where f(x) computes a unary op on real numbers.
template <typename Use>
bool with_function(Op op, const Use& use) {
  switch (op) {
#define HEDDLE_FUNCTION(enumerator, name, users, text, cost, types, accuracy, value) \
  case Op::enumerator:                                                               \
    use([](double x) -> double { return value; });                                   \
    return true;
#include "ir/ops.def"
    default:
      return false;
  }
}

// Calls use(f), where f(a, b) computes a binary op on real numbers.
template <typename Use>
bool with_binary_function(Op op, const Use& use) {
  using namespace values;
  switch (op) {
#define HEDDLE_BINARY_FUNCTION(enumerator, name, users, text, cost, types, accuracy, value) \
  case Op::enumerator:                                                                      \
    use([](double a, double b) -> double { return value; });                                \
    return true;
#include "ir/ops.def"
    default:
      return false;
  }
}

// Calls use(f), where f(a, b, bits) computes an op on integers held in T. T is uint64_t for u64 and int64_t for all
// other types (narrower unsigned types fit int64_t). `bits` is the width of the integers' type; the caller wraps the
// result to this width. A unary op ignores b.
template <typename T, typename Use>
bool with_integer_function(Op op, const Use& use) {
  using namespace values;
  switch (op) {
#define HEDDLE_INTEGER(enumerator, value)                                                   \
  case Op::enumerator:                                                                      \
    use([](T a, [[maybe_unused]] T b, [[maybe_unused]] int bits) -> T { return (value); }); \
    return true;
#include "ir/ops.def"
    default:
      return false;
  }
}

// Calls use(f), where f(a, b) compares two numbers held in T.
template <typename T, typename Use>
bool with_comparison(Op op, const Use& use) {
  switch (op) {
#define HEDDLE_COMPARISON(enumerator, name, sign, types) \
  case Op::enumerator:                                   \
    use([](T a, T b) -> bool { return a sign b; });      \
    return true;
#include "ir/ops.def"
    default:
      return false;
  }
}

}  // namespace heddle::ir
