#pragma once

#include <optional>
#include <vector>

#include "schedule/expr/index.h"

namespace heddle::schedule {

// The loops of two consecutive products, as in attention. The first three axes are kKey, kWidth and kDepth. The first
// product sums over kDepth, the second product sums over kKey, and kWidth indexes the columns of V. The other axes are
// dimensions of the operand of the second product that is multiplied by V. A dimension is split into several axes if a
// view requires it.
class ChainAxes {
 public:
  using Id = size_t;
  static constexpr Id kKey = 0, kWidth = 1, kDepth = 2;

  ChainAxes(int64_t keys, int64_t width, int64_t depth) : extents_{keys, width, depth} {}

  // Adds a dimension of this extent and returns its number.
  size_t add_dim(int64_t extent);
  // Adds the dimension of keys.
  void add_key_dim() { dims_.push_back({kKey}); }

  size_t count() const { return extents_.size(); }
  int64_t extent(Id axis) const { return extents_[axis]; }
  const std::vector<Id>& dim(size_t d) const { return dims_[d]; }  // the axes of dimension `d`, outermost first

  // Creates a variable for each axis, in order. The pool must not contain any variables yet.
  std::vector<Index> variables(IndexPool& pool) const;
  // The index of dimension `d`, given an index for each axis.
  Index index(IndexPool& pool, size_t d, const std::vector<Index>& axes) const;

  // Splits an axis if `index` (over the variables of all axes) is not linear in that axis. Returns true if an axis was
  // split.
  bool split_for(const IndexPool& pool, const Index& index);

 private:
  std::vector<int64_t> extents_;
  std::vector<std::vector<Id>> dims_;
};

// The coefficient of each variable of the pool in `index`; nullopt if `index` is not linear in the variables.
std::optional<std::vector<int64_t>> strides_of(const IndexPool& pool, const Index& index);

}  // namespace heddle::schedule
