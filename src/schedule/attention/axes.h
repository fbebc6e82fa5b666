#pragma once

#include <optional>
#include <vector>

#include "schedule/expr/index.h"

namespace heddle::schedule {

// The loops of two products in a row. The first three are summed over or belong to one operand alone; the others are
// dimensions of what the second product multiplies the values with, cut where a view needs it.
class ChainAxes {
 public:
  using Id = size_t;
  static constexpr Id kKey = 0, kWidth = 1, kDepth = 2;

  ChainAxes(int64_t keys, int64_t width, int64_t depth) : extents_{keys, width, depth} {}

  // A new dimension of this extent.
  size_t add_dim(int64_t extent);
  // The dimension that is the keys.
  void add_key_dim() { dims_.push_back({kKey}); }

  size_t count() const { return extents_.size(); }
  int64_t extent(Id axis) const { return extents_[axis]; }
  const std::vector<Id>& dim(size_t d) const { return dims_[d]; }  // its axes, the outermost first

  // A variable for each axis, in order; the pool must have none yet.
  std::vector<Index> variables(IndexPool& pool) const;
  // The index of a dimension, where the axes are at these.
  Index index(IndexPool& pool, size_t d, const std::vector<Index>& axes) const;

  // Cuts an axis where an index (over the variables of all axes) is no linear function of it; whether it could.
  bool split_for(const IndexPool& pool, const Index& index);

 private:
  std::vector<int64_t> extents_;
  std::vector<std::vector<Id>> dims_;
};

// What an index is multiplied by for each variable of a pool; nullopt where it is not linear in them.
std::optional<std::vector<int64_t>> strides_of(const IndexPool& pool, const Index& index);

}  // namespace heddle::schedule
