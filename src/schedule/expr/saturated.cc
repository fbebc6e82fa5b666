#include "schedule/expr/saturated.h"

#include <cmath>

#include "schedule/expr/match.h"

namespace heddle::schedule {

using ir::Op;

namespace {

// True if an f32 is an integer, an infinity or NaN. Sums and casts of integers qualify, since all f32 numbers from 2^23
// on are integers. `depth` limits how deep nested sums are followed.
bool is_integral(const ExprPool& pool, ExprId id, int depth = 3) {
  const Expr& e = pool[id];
  if (const auto number = as_number(pool, id)) return std::nearbyint(*number) == *number;
  if (e.kind != Expr::Kind::kOp || e.dtype != DType::kF32) return false;
  if (e.op == Op::kCast && !is_float(pool[e.args[0]].dtype)) return true;
  const bool rounds = e.op == Op::kRound || e.op == Op::kFloor || e.op == Op::kCeil || e.op == Op::kTrunc;
  const bool adds = depth > 0 && (e.op == Op::kAdd || e.op == Op::kSub);
  return rounds || (adds && is_integral(pool, e.args[0], depth - 1) && is_integral(pool, e.args[1], depth - 1));
}

}  // namespace

bool is_saturated(const ExprPool& pool, ExprId byte) {
  const Expr* const cast = as_op(pool, byte, Op::kCast);
  return cast != nullptr && pool[cast->args[0]].dtype == DType::kF32 && is_integral(pool, cast->args[0]);
}

RoundedSum rounded_sum_of(const ExprPool& pool, ExprId id) {
  const Expr* const sum = as_op(pool, id, Op::kAdd);
  const auto number = sum != nullptr ? as_number(pool, sum->args[1]) : std::nullopt;
  const bool is_small = number && std::nearbyint(*number) == *number && std::fabs(*number) <= kMostOffset;
  const Expr* const round = as_op(pool, is_small ? sum->args[0] : id, Op::kRound);
  if (round == nullptr) return {id};
  return {round->args[0], true, is_small ? static_cast<int64_t>(*number) : 0};
}

std::optional<Quotient> quotient_of(const ExprPool& pool, ExprId id) {
  const Expr* const cast = as_op(pool, id, Op::kCast);
  const Expr* const product =
      cast != nullptr && cast->dtype == DType::kF32 ? as_op(pool, cast->args[0], Op::kMul) : nullptr;
  if (product == nullptr || product->dtype != DType::kF64) return std::nullopt;
  const Expr* const wide = as_op(pool, product->args[0], Op::kCast);
  const auto reciprocal = as_number(pool, product->args[1]);
  if (wide == nullptr || pool[wide->args[0]].dtype != DType::kF32 || !reciprocal) return std::nullopt;
  constexpr double kMost = 0x1p60;  // no product below leaves the range of normal numbers
  if (!(*reciprocal > 1 / kMost && *reciprocal < kMost)) return std::nullopt;
  const auto divisor = static_cast<float>(1 / *reciprocal);
  return 1 / double{divisor} == *reciprocal ? std::optional(Quotient{wide->args[0], cast->args[0], divisor})
                                            : std::nullopt;
}

std::optional<Quotient> saturated_quotient_of(const ExprPool& pool, ExprId byte) {
  if (!is_byte(pool[byte].dtype) || !is_saturated(pool, byte)) return std::nullopt;
  const RoundedSum sum = rounded_sum_of(pool, pool[byte].args[0]);
  return sum.rounds ? quotient_of(pool, sum.x) : std::nullopt;
}

}  // namespace heddle::schedule
