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
    case Op::kNeg:
      return -x;
    case Op::kAbs:
      return std::abs(x);
    case Op::kSign:
      return x > 0 ? 1 : x < 0 ? -1 : x;
    case Op::kFloor:
      return std::floor(x);
    case Op::kCeil:
      return std::ceil(x);
    case Op::kRound:
      return std::nearbyint(x);
    case Op::kTrunc:
      return std::trunc(x);
    case Op::kSqrt:
      return std::sqrt(x);
    case Op::kRsqrt:
      return 1 / std::sqrt(x);
    case Op::kExp:
      return std::exp(x);
    case Op::kExpm1:
      return std::expm1(x);
    case Op::kLog:
      return std::log(x);
    case Op::kLog1p:
      return std::log1p(x);
    case Op::kSin:
      return std::sin(x);
    case Op::kCos:
      return std::cos(x);
    case Op::kTan:
      return std::tan(x);
    case Op::kAtan:
      return std::atan(x);
    case Op::kSinh:
      return std::sinh(x);
    case Op::kCosh:
      return std::cosh(x);
    case Op::kTanh:
      return std::tanh(x);
    case Op::kErf:
      return std::erf(x);
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
