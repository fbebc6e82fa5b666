#pragma once

#include <cmath>
#include <string_view>

#include "base/check.h"
#include "heddle/dtype.h"
#include "ir/op.h"

namespace heddle::ir {

// The associative operations of reduce, scan, scatter and window_reduce.
enum class Combine { kSum, kProd, kMax, kMin };

// "sum" or "add", "prod" or "mul", "max" or "any", "min" or "all".
Combine parse_combine(std::string_view kind);

// The op that joins two terms of a reduction of such a kind; of "any" kOr, of "all" kAnd.
Op combined_by(std::string_view kind);

// The identity element; for max it is -inf if the type has it, else the lowest value. Integers of u64 are returned by
// their bits.
double real_identity(Combine kind, DType dtype);
int64_t int_identity(Combine kind, DType dtype);

// Calls use(f) with f(accumulated, value) on double. NaN wins in max and min.
template <typename Use>
auto with_real_combine(Combine kind, const Use& use) {
  switch (kind) {
    case Combine::kSum:
      return use([](double a, double b) { return a + b; });
    case Combine::kProd:
      return use([](double a, double b) { return a * b; });
    case Combine::kMax:
      return use([](double a, double b) { return b > a || std::isnan(b) ? b : a; });
    default:
      return use([](double a, double b) { return b < a || std::isnan(b) ? b : a; });
  }
}

// The same on int64 representations. Sums and products are exact modulo 2^64, so wrap them to the type at the end.
template <typename Use>
auto with_int_combine(Combine kind, DType dtype, const Use& use) {
  using U = uint64_t;
  const bool u64 = dtype == DType::kU64;
  switch (kind) {
    case Combine::kSum:
      return use([](int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<U>(a) + static_cast<U>(b)); });
    case Combine::kProd:
      return use([](int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<U>(a) * static_cast<U>(b)); });
    case Combine::kMax:
      if (u64) return use([](int64_t a, int64_t b) { return static_cast<U>(b) > static_cast<U>(a) ? b : a; });
      return use([](int64_t a, int64_t b) { return b > a ? b : a; });
    default:
      if (u64) return use([](int64_t a, int64_t b) { return static_cast<U>(b) < static_cast<U>(a) ? b : a; });
      return use([](int64_t a, int64_t b) { return b < a ? b : a; });
  }
}

}  // namespace heddle::ir
