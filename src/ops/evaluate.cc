#include <bit>
#include <cmath>

#include "base/check.h"
#include "ir/ops/values.h"
#include "ops/epilogue.h"

namespace heddle::ops {
namespace {

using ir::Op;
using schedule::Expr;
using schedule::ExprId;

double unary(Op op, double x) {
  double result = x;
  const bool known = ir::with_function(op, [&](const auto& f) { result = f(x); });
  HEDDLE_CHECK(known || op == Op::kCast, "{} in an epilogue", to_string(op));
  return result;
}

double binary(Op op, double x, double y) {
  double result = 0;
  const auto apply = [&](const auto& f) { result = f(x, y); };
  const bool known = ir::with_binary_function(op, apply) || ir::with_comparison<double>(op, apply);
  HEDDLE_CHECK(known, "{} in an epilogue", to_string(op));
  return result;
}

}  // namespace

double evaluate_epilogue(const schedule::Epilogue& e, int64_t batch, int64_t row, int64_t column, double accumulator,
                         const std::function<double(uint32_t operand, int64_t position)>& load) {
  const auto position = [&](const schedule::Index& index) {
    int64_t at = index.constant;
    for (const auto& [id, coefficient] : index.terms) {
      const schedule::Atom& atom = e.pool.indices.atom(id);
      HEDDLE_CHECK(atom.kind == schedule::Atom::Kind::kVar);
      at += coefficient * (atom.id == e.batch ? batch : atom.id == e.row ? row : atom.id == e.col ? column : 0);
    }
    return at;
  };
  // Arguments come before what uses them.
  const ExprId last = e.stores.at(0).value;
  std::vector<double> values(last + 1);
  for (ExprId id = 0; id <= last; ++id) {
    const Expr& expr = e.pool[id];
    switch (expr.kind) {
      case Expr::Kind::kConstant:
        values[id] = std::bit_cast<double>(expr.bits);
        break;
      case Expr::Kind::kLocal:
        values[id] = accumulator;
        break;
      case Expr::Kind::kLoad:
        values[id] = load(expr.id, position(expr.index));
        break;
      default: {
        HEDDLE_CHECK(expr.kind == Expr::Kind::kOp);
        const auto arg = [&](size_t i) { return values[expr.args[i]]; };
        // A cast to integers drops the fraction; what a cast to a narrower float rounds is left to the caller's bound.
        values[id] = expr.op == Op::kCast && is_int(expr.dtype) ? std::trunc(arg(0))
                     : expr.args.size() == 1                    ? unary(expr.op, arg(0))
                     : expr.args.size() == 2                    ? binary(expr.op, arg(0), arg(1))
                                                                : (arg(0) != 0 ? arg(1) : arg(2));
      }
    }
  }
  return values[last];
}

}  // namespace heddle::ops
