#pragma once

#include <optional>
#include <vector>

#include "schedule/expr/index.h"

namespace heddle::schedule {

// The loops of two products in a row. The first three axes are summed over or belong to one operand only. The others
// are dimensions of the operand that the second product multiplies by the values, split if a view needs it.
class ChainAxes {
 public:
  using Id = size_t;
  static constexpr Id kKey = 0, kWidth = 1, kDepth = 2;

  ChainAxes(int64_t keys, int64_t width, int64_t depth) : extents_{keys, width, depth} {}

  // Adds a dimension of this extent.
  size_t add_dim(int64_t extent);
  // Adds the dimension of the keys.
  void add_key_dim() { dims_.push_back({kKey}); }

  size_t count() const { return extents_.size(); }
  int64_t extent(Id axis) const { return extents_[axis]; }
  const std::vector<Id>& dim(size_t d) const { return dims_[d]; }  // its axes, the outermost first

  // Makes a variable for each axis, in order; the pool must have none yet.
  std::vector<Index> variables(IndexPool& pool) const;
  // The index of a dimension for these indices of the axes.
  Index index(IndexPool& pool, size_t d, const std::vector<Index>& axes) const;

  // Splits an axis if an index (over the variables of all axes) is not linear in it. Returns true if it did.
  bool split_for(const IndexPool& pool, const Index& index);

 private:
  std::vector<int64_t> extents_;
  std::vector<std::vector<Id>> dims_;
};

// The factor of each variable of a pool in an index; nullopt if the index is not linear in them.
std::optional<std::vector<int64_t>> strides_of(const IndexPool& pool, const Index& index);

}  // namespace heddle::schedule
