#include <bit>
#include <cmath>

#include "base/check.h"
#include "ops/epilogue.h"

namespace heddle::ops {
namespace {

using ir::Op;
using schedule::Expr;
using schedule::ExprId;

double unary(Op op, double x) {
  switch (op) {
#define HEDDLE_FUNCTION(enumerator, name, text, cost, value) \
  case Op::enumerator:                                       \
    return value;
#include "ir/ops.def"
    default:
      HEDDLE_CHECK(op == Op::kCast, "{} in an epilogue", to_string(op));
      return x;
  }
}

double binary(Op op, double x, double y) {
  switch (op) {
    case Op::kAdd:
      return x + y;
    case Op::kSub:
      return x - y;
    case Op::kMul:
      return x * y;
    case Op::kDiv:
      return x / y;
    case Op::kMax:
      return std::isnan(x) || std::isnan(y) ? NAN : std::max(x, y);
    case Op::kMin:
      return std::isnan(x) || std::isnan(y) ? NAN : std::min(x, y);
    case Op::kLt:
      return x < y;
    case Op::kLe:
      return x <= y;
    case Op::kGt:
      return x > y;
    case Op::kGe:
      return x >= y;
    case Op::kEq:
      return x == y;
    case Op::kNe:
      return x != y;
    default:
      HEDDLE_CHECK(op == Op::kPow, "{} in an epilogue", to_string(op));
      return std::pow(x, y);
  }
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
