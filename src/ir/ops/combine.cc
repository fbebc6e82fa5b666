#include "ir/ops/combine.h"

#include <limits>

namespace heddle::ir {
namespace {

bool has_infinity(DType dtype) {
  return dtype <= DType::kBF16 || dtype == DType::kF8E5M2;
}

double highest_real(DType dtype) {
  if (has_infinity(dtype)) return std::numeric_limits<double>::infinity();
  return round_to(dtype, std::numeric_limits<double>::max());
}

double lowest_real(DType dtype) {
  if (dtype == DType::kF8E8M0) return round_to(dtype, 0);  // it has no sign
  return -highest_real(dtype);
}

}  // namespace

Op combined_by(std::string_view kind) {
  if (kind == "any") return Op::kOr;
  if (kind == "all") return Op::kAnd;
  switch (parse_combine(kind)) {
    case Combine::kSum:
      return Op::kAdd;
    case Combine::kProd:
      return Op::kMul;
    case Combine::kMax:
      return Op::kMax;
    default:
      return Op::kMin;
  }
}

Combine parse_combine(std::string_view kind) {
  if (kind == "sum" || kind == "add") return Combine::kSum;
  if (kind == "prod" || kind == "mul") return Combine::kProd;
  if (kind == "max" || kind == "any") return Combine::kMax;
  HEDDLE_CHECK(kind == "min" || kind == "all", "{} is no reduction", kind);
  return Combine::kMin;
}

double real_identity(Combine kind, DType dtype) {
  switch (kind) {
    case Combine::kSum:
      return 0;
    case Combine::kProd:
      return 1;
    case Combine::kMax:
      return lowest_real(dtype);
    default:
      return highest_real(dtype);
  }
}

int64_t int_identity(Combine kind, DType dtype) {
  if (kind == Combine::kSum) return 0;
  if (kind == Combine::kProd) return 1;
  if (dtype == DType::kBool) return kind == Combine::kMin;
  const int bits = bits_of(dtype);
  if (is_unsigned_int(dtype)) return kind == Combine::kMax ? 0 : static_cast<int64_t>(~uint64_t{0} >> (64 - bits));
  const auto highest = static_cast<int64_t>(~uint64_t{0} >> (65 - bits));
  return kind == Combine::kMax ? -highest - 1 : highest;
}

}  // namespace heddle::ir
