#include "schedule/attention/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "schedule/expr/expr_walk.h"

namespace heddle::schedule {
namespace {

// a * b^power; at most one of both may vary with the key.
KeyWeight multiply(const KeyWeight& a, const KeyWeight& b, int power) {
  KeyWeight result = a;
  result.factor = power > 0 ? a.factor * b.factor : a.factor / b.factor;
  for (const auto& [row, times] : b.exps) result.exps[row] += power * times;
  for (const auto& [sum, times] : b.sums) result.sums[sum] += power * times;
  std::erase_if(result.exps, [](const auto& e) { return e.second == 0; });
  std::erase_if(result.sums, [](const auto& e) { return e.second == 0; });
  if (b.score) result.score = b.score;
  result.zero_if_empty = a.zero_if_empty || b.zero_if_empty;
  return result;
}

bool is_bool_like(DType dtype) {
  return dtype == DType::kBool || !is_float(dtype);
}

}  // namespace

std::optional<KeyWeight> KeyAlgebra::refuse(std::string why) {
  if (why_.empty()) why_ = std::move(why);
  return std::nullopt;
}

std::optional<double> KeyFacts::number(ExprId id) const {
  const Expr& e = pool_[id];
  if (e.kind != Expr::Kind::kConstant || !is_float(e.dtype)) return std::nullopt;
  return std::bit_cast<double>(e.bits);
}

bool KeyFacts::varies(ExprId id) {
  if (pool_.vars(id) >> key_ & 1) return true;
  return made_once(pool_, varies_, id, [&](ExprId of) {
    const Expr& e = pool_[of];
    const auto has = [&](ExprId arg) { return varies_.at(arg); };
    return (e.kind == Expr::Kind::kLocal && e.id == 0) || std::any_of(e.args.begin(), e.args.end(), has);
  });
}

bool KeyFacts::reduces(ExprId id) {
  return made_once(pool_, reduces_, id, [&](ExprId of) {
    const Expr& e = pool_[of];
    const auto has = [&](ExprId arg) { return reduces_.at(arg); };
    return (e.kind == Expr::Kind::kLocal && e.id != 0) || std::any_of(e.args.begin(), e.args.end(), has);
  });
}

ExprId KeyFacts::in_f32(ExprId id) {
  return made_once(pool_, in_f32_, id, [&](ExprId of) {
    Expr e = pool_[of];
    for (ExprId& arg : e.args) arg = in_f32_.at(arg);
    const bool wide = is_float(e.dtype) && size_of(e.dtype) > 1;
    if (wide && e.kind == Expr::Kind::kOp && e.op == Op::kCast && is_float(pool_[e.args[0]].dtype)) return e.args[0];
    if (wide && e.kind != Expr::Kind::kLoad && e.kind != Expr::Kind::kRandom) e.dtype = DType::kF32;
    return pool_.add(std::move(e));
  });
}

std::optional<KeyWeight> KeyAlgebra::weight(ExprId id) {
  id = facts_.in_f32(id);
  if (const auto known = made_.find(id); known != made_.end()) return known->second;
  const std::optional<KeyWeight> result = make(id);
  made_[id] = result;
  return result;
}

std::optional<KeyWeight> KeyAlgebra::make(ExprId id) {
  const Expr e = pool_[id];
  if (const auto value = facts_.number(id)) {
    KeyWeight constant;
    constant.factor = *value;
    return constant;
  }
  if (e.kind == Expr::Kind::kLocal && e.id != 0) {
    const KeyReduction reduction = reductions_[e.id - 1];
    if (reduction.kind == "sum") return sum(reduction);
  }
  if (e.kind != Expr::Kind::kOp) return refuse("something else than exponentials is summed");
  switch (e.op) {
    case Op::kExp:
      return exponential(e.args[0]);
    case Op::kSelect:
      return guarded(e);
    case Op::kMul:
    case Op::kDiv:
    case Op::kAdd: {
      const auto a = weight(e.args[0]), b = weight(e.args[1]);
      if (!a || !b) return std::nullopt;
      if (e.op == Op::kAdd) return sum_of(*a, *b);
      if (b->score && (a->score || e.op == Op::kDiv)) return refuse("two values of a key are multiplied");
      return multiply(*a, *b, e.op == Op::kMul ? 1 : -1);
    }
    default:
      return refuse(fmt::format("{} comes after the exponential", ir::to_string(e.op)));
  }
}

// Sums and constant multiples taken apart as far as reductions are in them.
void KeyAlgebra::leaves(ExprId id, double factor, Leaves& to) {
  const Expr e = pool_[id];
  if (e.kind == Expr::Kind::kOp && facts_.reduces(id)) {
    const bool both = e.op == Op::kAdd || e.op == Op::kSub;
    if (both || e.op == Op::kNeg) {
      leaves(e.args[0], e.op == Op::kNeg ? -factor : factor, to);
      if (both) leaves(e.args[1], e.op == Op::kSub ? -factor : factor, to);
      return;
    }
    if (e.op == Op::kMul || e.op == Op::kDiv) {
      if (const auto b = facts_.number(e.args[1]))
        return leaves(e.args[0], e.op == Op::kMul ? factor * *b : factor / *b, to);
      const auto a = facts_.number(e.args[0]);
      if (a && e.op == Op::kMul) return leaves(e.args[1], factor * *a, to);
    }
  }
  to.emplace_back(id, factor);
}

ExprId KeyAlgebra::total(const Leaves& terms) {
  std::optional<ExprId> sum;
  for (const auto& [id, factor] : terms) {
    ExprId term = id;
    const bool subtract = factor < 0 && sum;
    const double times = subtract ? -factor : factor;
    if (times != 1) {
      term = pool_.add({.kind = Expr::Kind::kOp,
                        .dtype = DType::kF32,
                        .op = Op::kMul,
                        .args = {term, pool_.constant(DType::kF32, times)}});
    }
    sum = !sum ? term
               : pool_.add({.kind = Expr::Kind::kOp,
                            .dtype = DType::kF32,
                            .op = subtract ? Op::kSub : Op::kAdd,
                            .args = {*sum, term}});
  }
  return sum ? *sum : pool_.constant(DType::kF32, 0);
}

// exp of a sum is the product of exps: what reductions give goes to the rows, the rest is the score. A value of the row
// that no reduction gives stays in the score: it may be what hides the row.
std::optional<KeyWeight> KeyAlgebra::exponential(ExprId argument) {
  Leaves terms, score;
  leaves(argument, 1, terms);
  KeyWeight result;
  for (const auto& [id, factor] : terms) {
    if (!facts_.reduces(id)) {
      score.emplace_back(id, factor);
      continue;
    }
    if (facts_.varies(id)) return refuse("the scores are no function of the products of their own key");
    const Expr e = pool_[id];
    if (e.kind == Expr::Kind::kOp && e.op == Op::kLog && std::fabs(factor) == 1) {
      const auto inner = weight(e.args[0]);
      if (!inner) return std::nullopt;
      result = multiply(result, *inner, factor > 0 ? 1 : -1);
    } else {
      result.exps[id] += factor;
    }
  }
  const bool of_key =
      std::any_of(score.begin(), score.end(), [&](const auto& term) { return facts_.varies(term.first); });
  if (of_key) {
    result.score = total(score);
  } else {
    for (const auto& [id, factor] : score) result.exps[id] += factor;
  }
  std::erase_if(result.exps, [](const auto& e) { return e.second == 0; });
  return result;
}

// `term` / `rows` as exp of a value of the row.
std::optional<ExprId> KeyAlgebra::sink_of(const KeyWeight& term, const KeyWeight& rows) {
  KeyWeight plain = rows;
  plain.score.reset();
  const KeyWeight ratio = multiply(term, plain, -1);
  if (!ratio.sums.empty() || ratio.score || !(ratio.factor > 0)) return std::nullopt;
  Leaves terms;
  for (const auto& [id, factor] : ratio.exps) {
    if (facts_.reduces(id)) return std::nullopt;
    terms.emplace_back(id, factor);
  }
  if (ratio.factor != 1) terms.emplace_back(pool_.constant(DType::kF32, std::log(ratio.factor)), 1);
  return total(terms);
}

std::optional<KeyWeight> KeyAlgebra::sum(const KeyReduction& reduction) {
  const auto inner = weight(reduction.body);
  if (!inner) return std::nullopt;
  if (!inner->score || inner->zero_if_empty) return refuse("something else than exponentials is summed");
  ExpSum sum{*inner->score, {}};
  for (const ExprId further : reduction.further) {
    const auto term = weight(further);
    const auto sink = term ? sink_of(*term, *inner) : std::nullopt;
    if (!sink) return refuse("what is beside the scores is no score of its own");
    sum.sinks.push_back(*sink);
  }
  KeyWeight result = *inner;
  result.score.reset();
  result.sums[sum] += 1;
  return result;
}

// A sum over keys and a value of the row: as if there were one more score.
std::optional<KeyWeight> KeyAlgebra::sum_of(const KeyWeight& a, const KeyWeight& b) {
  const KeyWeight& keys = a.sums.empty() ? b : a;
  const KeyWeight& more = a.sums.empty() ? a : b;
  if (keys.score || more.score || keys.sums.size() != 1 || keys.sums.begin()->second != 1 || !more.sums.empty()) {
    return refuse("an addition comes after the exponential");
  }
  KeyWeight result = keys;
  ExpSum sum = keys.sums.begin()->first;
  result.sums.clear();
  const auto sink = sink_of(more, result);
  if (!sink) return refuse("an addition comes after the exponential");
  sum.sinks.push_back(*sink);
  result.sums[sum] = 1;
  return result;
}

bool KeyAlgebra::is_minus_infinity(ExprId id) const {
  const auto value = facts_.number(id);
  return value && std::isinf(*value) && *value < 0;
}

// Whether `id` is minus infinity where the score of `weight_of` is, and only there.
bool KeyAlgebra::is_score(ExprId id, ExprId weight_of) {
  const auto w = weight(weight_of);
  if (!w || !w->score) return false;
  const ExprId wanted = facts_.in_f32(id);
  for (ExprId score = *w->score;;) {
    if (score == wanted) return true;
    const Expr& e = pool_[score];
    if (e.kind != Expr::Kind::kOp || (e.op != Op::kMul && e.op != Op::kDiv)) return false;
    const auto factor = facts_.number(e.args[1]);
    if (!factor || !(*factor > 0)) return false;
    score = e.args[0];
  }
}

bool KeyAlgebra::is_empty_row(ExprId condition, bool holds, ExprId weight_of) {
  const Expr e = pool_[condition];
  const auto same = [&](ExprId id) { return facts_.in_f32(id) == weight_of; };
  if (e.kind == Expr::Kind::kOp) {
    switch (e.op) {
      case Op::kNot:
        return is_empty_row(e.args[0], !holds, weight_of);
      case Op::kCast:  // flags as numbers
        return is_bool_like(e.dtype) && is_bool_like(pool_[e.args[0]].dtype) &&
               is_empty_row(e.args[0], holds, weight_of);
      case Op::kIsNan:
        return holds && same(e.args[0]);
      case Op::kNe:
        return holds && e.args[0] == e.args[1] && same(e.args[0]);
      case Op::kEq:
        if (!holds && e.args[0] == e.args[1] && same(e.args[0])) return true;
        break;
      default:
        break;
    }
  }
  // All scores, or the greatest one, are minus infinity.
  const auto hidden = [&](ExprId id, bool is) {
    Expr at = pool_[id];
    while (at.kind == Expr::Kind::kOp && (at.op == Op::kNot || at.op == Op::kCast)) {
      if (at.op == Op::kNot) is = !is;
      id = at.args[0], at = pool_[id];
    }
    if (at.kind != Expr::Kind::kOp) return std::optional<ExprId>();
    if (at.op == Op::kIsInf && is && at.hi != 0 && at.lo == 0) return std::optional(at.args[0]);
    if (at.op != (is ? Op::kEq : Op::kNe)) return std::optional<ExprId>();
    if (is_minus_infinity(facts_.in_f32(at.args[1]))) return std::optional(at.args[0]);
    return is_minus_infinity(facts_.in_f32(at.args[0])) ? std::optional(at.args[1]) : std::nullopt;
  };
  if (e.kind == Expr::Kind::kLocal && e.id != 0) {
    const KeyReduction reduction = reductions_[e.id - 1];
    const bool all = reduction.kind == "all" || reduction.kind == "min" || reduction.kind == "prod";
    const bool any = reduction.kind == "any" || reduction.kind == "max";
    if (!is_bool_like(e.dtype) || !(holds ? all : any)) return false;
    const auto score = hidden(reduction.body, holds);
    return score && is_score(*score, weight_of);
  }
  if (const auto top = hidden(condition, holds)) {
    const Expr reduction = pool_[facts_.in_f32(*top)];
    return reduction.kind == Expr::Kind::kLocal && reduction.id != 0 && reductions_[reduction.id - 1].kind == "max" &&
           is_score(reductions_[reduction.id - 1].body, weight_of);
  }
  return false;
}

// 0 where a row has no key: the guard against 0 / 0 behind a softmax.
std::optional<KeyWeight> KeyAlgebra::guarded(const Expr& select) {
  for (const bool first : {true, false}) {
    const ExprId zero = select.args[first ? 1 : 2], other = select.args[first ? 2 : 1];
    if (facts_.number(zero) != 0.0) continue;
    auto w = weight(other);
    if (!w) return std::nullopt;
    const bool quotient = std::any_of(w->sums.begin(), w->sums.end(), [](const auto& s) { return s.second < 0; });
    if (quotient && is_empty_row(select.args[0], first, other)) {
      w->zero_if_empty = true;
      return w;
    }
  }
  return refuse("a selection comes after the exponential");
}

std::optional<SoftmaxForm> KeyAlgebra::softmax(const KeyWeight& weight,
                                               const std::vector<std::pair<KeyWeight, int>>& behind) {
  KeyWeight all = weight;
  for (const auto& [row, power] : behind) all = multiply(all, row, power);
  const auto no = [this](std::string why) {
    refuse(std::move(why));
    return std::nullopt;
  };
  if (!all.score) return no("nothing varies with the key");
  if (facts_.reduces(*all.score)) return no("the scores are no function of the products of their own key");
  if (all.sums.size() != 1 || all.sums.begin()->second != -1) return no("exponentials are not divided by their sum");
  const ExpSum& sum = all.sums.begin()->first;
  if (sum.score != *all.score) return no("other exponentials are summed than are multiplied");
  if (!all.exps.empty()) return no("the exponentials and their sum are shifted by different values");
  if (all.factor != 1) return no(fmt::format("probabilities are multiplied by {}", all.factor));
  return SoftmaxForm{sum.score, sum.sinks, all.zero_if_empty};
}

}  // namespace heddle::schedule
