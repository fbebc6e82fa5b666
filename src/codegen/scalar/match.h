#pragma once

#include <bit>
#include <optional>

#include "schedule/expr/expr.h"

namespace heddle::codegen {

// The expression if it is this operation, else null.
inline const schedule::Expr* as_op(const schedule::ExprPool& pool, schedule::ExprId id, ir::Op op) {
  const schedule::Expr& e = pool[id];
  return e.kind == schedule::Expr::Kind::kOp && e.op == op ? &e : nullptr;
}

// The value of a constant of a floating type.
inline std::optional<double> as_number(const schedule::ExprPool& pool, schedule::ExprId id) {
  const schedule::Expr& e = pool[id];
  if (e.kind != schedule::Expr::Kind::kConstant || !is_float(e.dtype)) return std::nullopt;
  return std::bit_cast<double>(e.bits);
}

}  // namespace heddle::codegen
