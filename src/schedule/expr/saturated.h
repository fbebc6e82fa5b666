#pragma once

#include <cstdint>
#include <optional>

#include "schedule/expr/expr.h"

namespace heddle::schedule {

constexpr int64_t kMostOffset = 1024;  // of a zero point, so that all types hold its sum with a number of 8 bits

inline bool is_byte(DType dtype) {
  return dtype == DType::kI8 || dtype == DType::kU8;
}

// True if a number of 8 bits is a saturated integral f32.
bool is_saturated(const ExprPool& pool, ExprId byte);

// An integral f32 as a sum: round_even(x) + offset, or x itself, which is integral.
struct RoundedSum {
  ExprId x;
  bool rounds = false;
  int64_t offset = 0;
};
RoundedSum rounded_sum_of(const ExprPool& pool, ExprId id);

// A quotient by an f32 that is expressed as a product with the divisor's reciprocal in f64, which rounds the same.
struct Quotient {
  ExprId dividend, product;
  float divisor;
};
std::optional<Quotient> quotient_of(const ExprPool& pool, ExprId id);

// The quotient that a number of 8 bits is rounded and saturated from. GPU kernels compute it in f32.
std::optional<Quotient> saturated_quotient_of(const ExprPool& pool, ExprId byte);

}  // namespace heddle::schedule
