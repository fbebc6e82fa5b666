#pragma once

#include <bit>
#include <optional>

#include "schedule/expr/expr.h"

namespace heddle::schedule {

// The expression if it is this operation, else null.
inline const Expr* as_op(const ExprPool& pool, ExprId id, ir::Op op) {
  const Expr& e = pool[id];
  return e.kind == Expr::Kind::kOp && e.op == op ? &e : nullptr;
}

// The value of a constant of a floating type.
inline std::optional<double> as_number(const ExprPool& pool, ExprId id) {
  const Expr& e = pool[id];
  if (e.kind != Expr::Kind::kConstant || !is_float(e.dtype)) return std::nullopt;
  return std::bit_cast<double>(e.bits);
}

}  // namespace heddle::schedule
