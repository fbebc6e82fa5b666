#pragma once

#include <cmath>
#include <string_view>

#include "base/check.h"
#include "heddle/dtype.h"
#include "ir/op.h"

namespace heddle::ir {

// Returns the op that combines two terms of a reduce, scan, scatter or window_reduce of this kind: kAdd for "sum" and
// "add", kMul for "prod" and "mul", kMax for "max", kMin for "min", kOr for "any", kAnd for "all".
Op combined_by(std::string_view kind);

// Return the identity element of an op. For max it is -inf if the type has infinities, else the lowest value; for min
// it is the opposite. For u64, int_identity() returns the bit pattern as an int64_t.
double real_identity(Op op, DType dtype);
int64_t int_identity(Op op, DType dtype);

// Calls use(f), where f(accumulated, value) combines two doubles. In max and min, the result is NaN if `value` or
// `accumulated` is NaN.
template <typename Use>
auto with_real_combine(Op op, const Use& use) {
  switch (op) {
    case Op::kAdd:
      return use([](double a, double b) { return a + b; });
    case Op::kMul:
      return use([](double a, double b) { return a * b; });
    case Op::kMax:
    case Op::kOr:
      return use([](double a, double b) { return b > a || std::isnan(b) ? b : a; });
    default:
      return use([](double a, double b) { return b < a || std::isnan(b) ? b : a; });
  }
}

// Like with_real_combine(), for integers represented as int64_t. Sums and products are exact modulo 2^64, so it
// suffices to wrap them to the type at the end.
template <typename Use>
auto with_int_combine(Op op, DType dtype, const Use& use) {
  using U = uint64_t;
  const bool u64 = dtype == DType::kU64;
  switch (op) {
    case Op::kAdd:
      return use([](int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<U>(a) + static_cast<U>(b)); });
    case Op::kMul:
      return use([](int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<U>(a) * static_cast<U>(b)); });
    case Op::kMax:
    case Op::kOr:
      if (u64) return use([](int64_t a, int64_t b) { return static_cast<U>(b) > static_cast<U>(a) ? b : a; });
      return use([](int64_t a, int64_t b) { return b > a ? b : a; });
    default:
      if (u64) return use([](int64_t a, int64_t b) { return static_cast<U>(b) < static_cast<U>(a) ? b : a; });
      return use([](int64_t a, int64_t b) { return b < a ? b : a; });
  }
}

}  // namespace heddle::ir
