#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "schedule/attention/masks/constant_mask.h"
#include "schedule/attention/masks/interval.h"

namespace heddle::schedule {

// Bounds of the scores in a box of rows and keys. Evaluates the expression of the scores, which may contain any
// operator, in interval arithmetic.
class ScoreBounds {
 public:
  // `constant` is as in classify_scores(). Atoms are added to the index pool of `scores`.
  ScoreBounds(Epilogue& scores, const std::function<const Tensor*(uint32_t)>& constant);

  // Assumes that the length expression `length` has values in `range`, until the next call.
  void set_length(ExprId length, Range range) { length_ = length, lengths_ = range; }
  void forget_length() { length_.reset(); }

  Bounds at(const Box& box);
  // The number of expressions that at() evaluates.
  size_t size() const { return order_.size(); }

 private:
  std::unique_ptr<ConstantMask> constant_mask(const Tensor& tensor, const Index& index) const;
  Range range_of(const Index& index) const;
  Range range_of(const Atom& atom) const;
  Bounds of_position(const Index& index) const;
  Bounds of(ExprId id) const;
  Bounds of_op(const Expr& e) const;
  Bounds of_logic(const Expr& e) const;
  Bounds of_arithmetic(const Expr& e) const;
  Bounds comparison(const Expr& e) const;
  Bounds cast(const Expr& e) const;

  const Epilogue& e_;
  const ExprId root_;
  Box box_{};
  std::optional<ExprId> length_;
  Range lengths_{};
  std::vector<ExprId> order_;  // operands first
  std::vector<std::optional<Index>> positions_;
  // For comparisons of two positions: the difference between the first and the second position.
  std::vector<std::optional<Index>> differences_;
  std::vector<Bounds> values_;
  std::vector<std::unique_ptr<ConstantMask>> masks_;
};

}  // namespace heddle::schedule
