#pragma once

#include <cmath>
#include <string_view>

#include "base/check.h"
#include "heddle/dtype.h"
#include "ir/op.h"

namespace heddle::ir {

// The op that joins two terms of a reduce, scan, scatter or window_reduce: kAdd of "sum" and "add", kMul of "prod" and
// "mul", kMax, kMin, kOr of "any", kAnd of "all".
Op combined_by(std::string_view kind);

// The identity element; for max it is -inf if the type has it, else the lowest value. Integers of u64 are returned by
// their bits.
double real_identity(Op op, DType dtype);
int64_t int_identity(Op op, DType dtype);

// Calls use(f) with f(accumulated, value) on double. NaN wins in max and min.
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

// The same on int64 representations. Sums and products are exact modulo 2^64, so wrap them to the type at the end.
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
