#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedule/expr/expr.h"

namespace heddle::schedule {

// What lies between two products as algebra. Expressions are over a batch, a row and a key; the first product's element
// is local 0, the result of reduction i over the keys is local i + 1.
struct KeyReduction {
  std::string kind;             // of ir::Op::kReduce
  ExprId body = 0;              // of each key
  std::vector<ExprId> further;  // terms that are no key's: the scores of sinks
};

// sum over keys of exp(score), plus exp(sink) for each sink.
struct ExpSum {
  ExprId score = 0;
  std::vector<ExprId> sinks;
  auto operator<=>(const ExpSum&) const = default;
};

// factor * product of exp(row)^power * product of sum^power * exp(score): a form that products, quotients and sums over
// keys keep, so that two computations of one function have one form, in whatever order they do it. What a row is
// multiplied by goes in and out of a sum over its keys, which is why a sum can be repaired when a later key raises the
// maximum.
struct KeyWeight {
  double factor = 1;
  std::map<ExprId, double> exps;  // of values that do not vary with the key
  std::map<ExpSum, int> sums;
  std::optional<ExprId> score;  // nullopt: does not vary with the key
  bool zero_if_empty = false;   // is 0, not NaN, in a row without any key (all scores are minus infinity)
};

// exp(score) / (sum over keys of exp(score) + exp(sinks)).
struct SoftmaxForm {
  ExprId score = 0;
  std::vector<ExprId> sinks;
  bool zero_if_empty = false;
};

// What expressions between two products are made of.
class KeyFacts {
 public:
  KeyFacts(ExprPool& pool, VarId key) : pool_(pool), key_(key) {}

  // The same without casts between floats, computed in f32.
  ExprId in_f32(ExprId id);
  // Whether an expression varies with the key.
  bool varies(ExprId id);
  // Whether an expression is computed from reductions over the keys.
  bool reduces(ExprId id);
  // A constant of a floating type.
  std::optional<double> number(ExprId id) const;

 private:
  ExprPool& pool_;
  VarId key_;
  std::map<ExprId, ExprId> in_f32_;
  std::map<ExprId, bool> varies_, reduces_;
};

class KeyAlgebra {
 public:
  // `key`: the variable of the keys. Reductions may be added while this object exists.
  KeyAlgebra(ExprPool& pool, const std::vector<KeyReduction>& reductions, VarId key)
      : pool_(pool), reductions_(reductions), facts_(pool, key) {}

  // The form of an expression; nullopt, with the reason in why(), where it has none.
  std::optional<KeyWeight> weight(ExprId id);
  // The softmax that `weight` is, multiplied by the rows' values `behind` the second product (each with its power, 1 or
  // -1); nullopt with a reason where it is none.
  std::optional<SoftmaxForm> softmax(const KeyWeight& weight, const std::vector<std::pair<KeyWeight, int>>& behind);
  const std::string& why() const { return why_; }

  // Whether an expression varies with the key.
  bool varies(ExprId id) { return facts_.varies(id); }

 private:
  using Leaves = std::vector<std::pair<ExprId, double>>;  // a sum of expressions, each with a factor

  std::optional<KeyWeight> refuse(std::string why);
  std::optional<KeyWeight> make(ExprId id);
  std::optional<KeyWeight> exponential(ExprId argument);
  std::optional<KeyWeight> sum(const KeyReduction& reduction);
  std::optional<KeyWeight> sum_of(const KeyWeight& a, const KeyWeight& b);
  std::optional<KeyWeight> guarded(const Expr& select);
  std::optional<ExprId> sink_of(const KeyWeight& term, const KeyWeight& rows);
  void leaves(ExprId id, double factor, Leaves& to);
  ExprId total(const Leaves& terms);
  // Whether a condition holds in rows without any key only (`holds` true), or in all others only.
  bool is_empty_row(ExprId condition, bool holds, ExprId weight);
  bool is_minus_infinity(ExprId id) const;
  bool is_score(ExprId id, ExprId weight);

  ExprPool& pool_;
  const std::vector<KeyReduction>& reductions_;
  KeyFacts facts_;
  std::string why_;
  std::map<ExprId, std::optional<KeyWeight>> made_;
};

}  // namespace heddle::schedule
