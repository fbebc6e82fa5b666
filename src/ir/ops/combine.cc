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
  if (kind == "sum") return Op::kAdd;
  if (kind == "prod") return Op::kMul;
  if (kind == "any") return Op::kOr;
  if (kind == "all") return Op::kAnd;
  const std::optional<Op> op = parse_op(kind);
  HEDDLE_CHECK(op == Op::kAdd || op == Op::kMul || op == Op::kMax || op == Op::kMin, "{} is no reduction", kind);
  return *op;
}

double real_identity(Op op, DType dtype) {
  switch (op) {
    case Op::kAdd:
      return 0;
    case Op::kMul:
      return 1;
    case Op::kMax:
      return lowest_real(dtype);
    default:
      return highest_real(dtype);
  }
}

int64_t int_identity(Op op, DType dtype) {
  if (op == Op::kAdd) return 0;
  if (op == Op::kMul) return 1;
  if (dtype == DType::kBool) return op == Op::kMin || op == Op::kAnd;
  const int bits = bits_of(dtype);
  if (is_unsigned_int(dtype)) return op == Op::kMax ? 0 : static_cast<int64_t>(~uint64_t{0} >> (64 - bits));
  const auto highest = static_cast<int64_t>(~uint64_t{0} >> (65 - bits));
  return op == Op::kMax ? -highest - 1 : highest;
}

}  // namespace heddle::ir
