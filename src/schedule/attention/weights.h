#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedule/expr/expr.h"

namespace heddle::schedule {

// This file analyses the computation between two products. Its expressions are functions of a batch, a row and a key.
// In an expression, local 0 is an element of the first product, and local i + 1 is the result of reduction i over the
// keys.

// A reduction over the keys.
struct KeyReduction {
  std::string kind;             // as for ir::Op::kReduce
  ExprId body = 0;              // the reduced value of a key
  std::vector<ExprId> further;  // additional terms without a key: the scores of sinks
};

// The sum over all keys of exp(score), plus exp(sink) for each sink.
struct ExpSum {
  ExprId score = 0;
  std::vector<ExprId> sinks;
  auto operator<=>(const ExpSum&) const = default;
};

// A value of the form factor * (product of exp(row)^power) * (product of sum^power) * exp(score). Products, quotients
// and sums over keys preserve this form. Two computations of one function therefore have the same form, whatever the
// order of their operations. A factor that depends only on the row can be moved into or out of a sum over the row's
// keys. For this reason, a sum can be corrected when a later key raises the maximum.
struct KeyWeight {
  double factor = 1;
  std::map<ExprId, double> exps;  // powers, by a value that does not vary with the key
  std::map<ExpSum, int> sums;
  std::optional<ExprId> score;  // nullopt: the weight does not vary with the key
  bool zero_if_empty = false;   // 0, not NaN, in an empty row (all scores are minus infinity)
};

// A softmax: exp(score) / (sum over keys of exp(score) + exp(sinks)).
struct SoftmaxForm {
  ExprId score = 0;
  std::vector<ExprId> sinks;
  bool zero_if_empty = false;
};

// Properties of the expressions between two products.
class KeyFacts {
 public:
  KeyFacts(ExprPool& pool, VarId key) : pool_(pool), key_(key) {}

  // The expression without casts between floating-point types, as computed in f32.
  ExprId in_f32(ExprId id);
  // True if the value of an expression depends on the key.
  bool varies(ExprId id);
  // True if an expression depends on a reduction over the keys.
  bool reduces(ExprId id);
  // The value of an expression that is a floating-point constant; nullopt for other expressions.
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

  // The form of an expression. nullopt if it has none; why() then returns the reason.
  std::optional<KeyWeight> weight(ExprId id);
  // Matches a softmax: `weight`, multiplied by the factors `behind` that follow the second product and depend only on
  // the row. Each factor has its power, 1 or -1. nullopt if the result is not a softmax; why() then returns the reason.
  std::optional<SoftmaxForm> softmax(const KeyWeight& weight, const std::vector<std::pair<KeyWeight, int>>& behind);
  const std::string& why() const { return why_; }

  // True if the value of an expression depends on the key.
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
  // Returns true if `condition` has the value `holds` only in rows without any key. `weight` is the attention weight
  // that the condition guards; it is NaN in such rows.
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
