// Functions in shorter forms: those of tile/op/cuda/fast.h for values that are rounded to 16 bits or fewer, and some of
// tile/op/cuda/math.h for all.
#include "codegen/scalar/fast_math.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <string_view>

#include "codegen/scalar/text_value.h"
#include "schedule/expr/match.h"

namespace heddle::codegen {
namespace {

using ir::Op;
using schedule::Expr;
using schedule::ExprId;
using schedule::ExprPool;

bool near(double x, double y) {
  return std::abs(x - y) <= 1e-3 * std::abs(y);  // as f16 or bf16 may have written it
}

bool near_exactly(double x, double y) {
  return std::abs(x - y) <= 1e-7 * std::abs(y);
}

// The other term of a sum that adds 1 to an `op`.
const Expr* beside_one(const ExprPool& pool, ExprId id, Op op) {
  const Expr* sum = as_op(pool, id, Op::kAdd);
  if (sum == nullptr) return nullptr;
  for (size_t i = 0; i < 2; ++i) {
    const auto one = as_number(pool, sum->args[i]);
    if (one && *one == 1) return as_op(pool, sum->args[1 - i], op);
  }
  return nullptr;
}

// Factors of a product: constants multiplied together, the others in order. What has more than the forms here is not
// taken apart to its end: squares of squares have as many factors as there are paths.
struct Product {
  double constant = 1;
  std::vector<ExprId> others;

  Product(const ExprPool& pool, ExprId id) {
    constexpr size_t kMostOthers = 2;
    constexpr int kMostFactors = 32;
    std::vector<ExprId> open = {id};
    for (int factors = 0; !open.empty() && others.size() <= kMostOthers; ++factors) {
      const ExprId at = open.back();
      open.pop_back();
      const Expr *mul = as_op(pool, at, Op::kMul), *div = as_op(pool, at, Op::kDiv);
      if (const auto number = as_number(pool, at)) {
        constant *= *number;
      } else if (mul != nullptr && factors < kMostFactors) {
        open.insert(open.end(), {mul->args[1], mul->args[0]});
      } else if (div != nullptr && as_number(pool, div->args[1]) && factors < kMostFactors) {
        open.push_back(div->args[0]);
        constant /= *as_number(pool, div->args[1]);
      } else {
        others.push_back(at);
      }
    }
  }
};

// y where a product is gelu(y) = y (1 + erf(y / sqrt(2))) / 2.
std::optional<ExprId> gelu_of(const ExprPool& pool, ExprId id) {
  if (as_op(pool, id, Op::kMul) == nullptr) return std::nullopt;
  const Product product(pool, id);
  if (product.others.size() != 2 || !near(product.constant, 0.5)) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const Expr* erf = beside_one(pool, product.others[i], Op::kErf);
    if (erf == nullptr) continue;
    const Product argument(pool, erf->args[0]), other(pool, product.others[1 - i]);
    const bool same = argument.others == other.others && other.constant == 1;
    if (same && argument.others.size() == 1 && near(argument.constant, std::sqrt(0.5))) return argument.others[0];
  }
  return std::nullopt;
}

// 1 / (1 + e^-y): y.
std::optional<ExprId> sigmoid_of(const ExprPool& pool, ExprId id) {
  const Expr* div = as_op(pool, id, Op::kDiv);
  if (div == nullptr || as_number(pool, div->args[0]) != 1.0) return std::nullopt;
  const Expr* exp = beside_one(pool, div->args[1], Op::kExp);
  const Expr* minus = exp != nullptr ? as_op(pool, exp->args[0], Op::kNeg) : nullptr;
  return minus != nullptr ? std::optional(minus->args[0]) : std::nullopt;
}

// y where a product is y / (1 + e^-y).
std::optional<ExprId> silu_of(const ExprPool& pool, ExprId id) {
  const Product product(pool, id);
  if (product.others.size() != 2 || product.constant != 1) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    if (const auto y = sigmoid_of(pool, product.others[i]); y && *y == product.others[1 - i]) return y;
  }
  return std::nullopt;
}

// high clamp(slope y + offset, 0, 1): the smaller and the larger of either order, about a sum with a number.
struct Ramp {
  ExprId y;
  double slope, offset, high;
};
std::optional<Ramp> ramp_of(const ExprPool& pool, ExprId id) {
  std::optional<double> low, high;
  for (int i = 0; i < 2; ++i) {
    const Expr& e = pool[id];
    if (e.kind != Expr::Kind::kOp || (e.op != Op::kMin && e.op != Op::kMax)) return std::nullopt;
    const size_t at = as_number(pool, e.args[0]) ? 0 : 1;
    (e.op == Op::kMax ? low : high) = as_number(pool, e.args[at]);
    id = e.args[1 - at];
  }
  const Expr* sum = as_op(pool, id, Op::kAdd);
  if (low != 0.0 || !high || *high <= 0 || sum == nullptr) return std::nullopt;
  const size_t at = as_number(pool, sum->args[0]) ? 0 : 1;
  const auto offset = as_number(pool, sum->args[at]);
  const Product line(pool, sum->args[1 - at]);
  if (!offset || line.others.size() != 1) return std::nullopt;
  return Ramp{line.others[0], line.constant / *high, *offset / *high, *high};
}

// A product of y and a ramp of y, times a factor.
struct RampProduct {
  Ramp ramp;
  double factor;
};
std::optional<RampProduct> ramp_product_of(const ExprPool& pool, ExprId id) {
  const Product product(pool, id);
  if (product.others.size() != 2) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const auto ramp = ramp_of(pool, product.others[i]);
    if (ramp && ramp->y == product.others[1 - i]) return RampProduct{*ramp, product.constant * ramp->high};
  }
  return std::nullopt;
}

// A function of tile that an expression is.
struct Form {
  std::string_view function;
  ExprId argument;
};
std::optional<Form> form_of(const ExprPool& pool, ExprId id) {
  const Expr& e = pool[id];
  switch (e.op) {
    case Op::kExp:
      return Form{"tile::fast::exp", e.args[0]};
    case Op::kTanh:
      return Form{"tile::fast::tanh", e.args[0]};
    case Op::kMul:
      if (const auto y = gelu_of(pool, id)) return Form{"tile::fast::gelu", *y};
      if (const auto y = silu_of(pool, id)) return Form{"tile::fast::silu", *y};
      return std::nullopt;
    case Op::kAdd:
      if (const Expr* tanh = beside_one(pool, id, Op::kTanh)) return Form{"tile::fast::tanh_plus_one", tanh->args[0]};
      if (const Expr* erf = beside_one(pool, id, Op::kErf)) return Form{"tile::erf_plus_one", erf->args[0]};
      return std::nullopt;
    case Op::kDiv:
      if (const auto y = sigmoid_of(pool, id)) return Form{"tile::fast::sigmoid", *y};
      return std::nullopt;
    case Op::kLog1p: {
      const Expr* exp = as_op(pool, e.args[0], Op::kExp);
      const Expr* minus = exp != nullptr ? as_op(pool, exp->args[0], Op::kNeg) : nullptr;
      if (minus == nullptr || as_op(pool, minus->args[0], Op::kAbs) == nullptr) return std::nullopt;
      return Form{"tile::fast::log1p_exp", exp->args[0]};
    }
    default:
      return std::nullopt;
  }
}

// max(y, 0): y.
std::optional<ExprId> relu_of(const ExprPool& pool, ExprId id) {
  const Expr* max = as_op(pool, id, Op::kMax);
  if (max == nullptr) return std::nullopt;
  const size_t at = as_number(pool, max->args[0]) ? 0 : 1;
  return as_number(pool, max->args[at]) == 0.0 ? std::optional(max->args[1 - at]) : std::nullopt;
}

// max(y, 0) + log(1 + e^-|y|): y.
std::optional<ExprId> softplus_of(const ExprPool& pool, ExprId id) {
  const Expr* sum = as_op(pool, id, Op::kAdd);
  if (sum == nullptr) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const auto y = relu_of(pool, sum->args[i]);
    const Expr* log = as_op(pool, sum->args[1 - i], Op::kLog1p);
    const Expr* exp = y && log != nullptr ? as_op(pool, log->args[0], Op::kExp) : nullptr;
    const Expr* minus = exp != nullptr ? as_op(pool, exp->args[0], Op::kNeg) : nullptr;
    const Expr* abs = minus != nullptr ? as_op(pool, minus->args[0], Op::kAbs) : nullptr;
    if (abs != nullptr && abs->args[0] == *y) return y;
  }
  return std::nullopt;
}

// 1 / (1 + e^-y) or y / (1 + e^-y): neither needs a division for divisors of any size.
bool divides_by_logistic(const ExprPool& pool, ExprId id) {
  const Expr* div = as_op(pool, id, Op::kDiv);
  const Expr* exp = div != nullptr ? beside_one(pool, div->args[1], Op::kExp) : nullptr;
  if (exp == nullptr) return false;
  const Expr* minus = as_op(pool, exp->args[0], Op::kNeg);
  return as_number(pool, div->args[0]) == 1.0 || (minus != nullptr && minus->args[0] == div->args[0]);
}

}  // namespace

std::optional<PackForm> pack_form_of(const ExprPool& pool, ExprId id) {
  if (computed_type(pool[id].dtype) != "float" || pool[id].kind != Expr::Kind::kOp) return std::nullopt;
  if (const auto y = relu_of(pool, id)) return PackForm{"tile::fast::pack_relu", *y};
  if (const auto y = gelu_of(pool, id)) return PackForm{"tile::fast::pack_gelu", *y};
  if (const auto y = softplus_of(pool, id)) return PackForm{"tile::fast::pack_softplus", *y};
  return std::nullopt;
}

std::optional<ShortForm> short_form_of(const ExprPool& pool, ExprId id, bool fast, std::optional<ExprId> rounded) {
  const Expr& e = pool[id];
  const bool exact = (e.op == Op::kMul || e.op == Op::kDiv) && e.lo != 0;
  if (exact || computed_type(e.dtype) != "float") return std::nullopt;
  if (const auto form = form_of(pool, id)) {
    const auto is = [&](std::string_view name) { return form->function == name; };
    // The others' errors are those of 16 bits, and grow in what follows.
    const bool rounds = rounded && (id == *rounded || is("tile::fast::exp") || is("tile::fast::sigmoid"));
    if (fast || rounds || is("tile::erf_plus_one")) {
      return ShortForm{fmt::format("{}({{0}})", form->function), {form->argument}};
    }
  }
  if (!fast) {
    if (!divides_by_logistic(pool, id)) return std::nullopt;
    return ShortForm{"tile::divide_by_logistic({0}, {1})", e.args};
  }
  if (const auto p = e.op == Op::kMul ? ramp_product_of(pool, id) : std::nullopt) {
    std::string ramp = fmt::format("tile::fast::times_ramp({{0}}, {:.9e}f, {:.9e}f)", p->ramp.slope, p->ramp.offset);
    if (!near_exactly(p->factor, 1)) ramp += fmt::format(" * tile::splat<{{2}}>({:.9e}f)", p->factor);
    return ShortForm{std::move(ramp), {p->ramp.y}};
  }
  if (e.op != Op::kDiv) return std::nullopt;
  // The reciprocal of a constant divisor is known at compile time; in f32 such a division is a sum divided by its
  // count.
  const bool constant = as_number(pool, e.args[1]).has_value();
  if (constant && e.dtype == DType::kF32) return std::nullopt;
  return ShortForm{constant ? "{0} * (tile::splat<{2}>(1.0f) / {1})" : "tile::fast::divide({0}, {1})", e.args};
}

}  // namespace heddle::codegen
