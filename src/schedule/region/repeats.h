#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "schedule/region/exprs/kernel_exprs.h"

namespace heddle::schedule {

constexpr double kMostRepeats = 4;  // how often all kernels of a group together may compute a costly value

// Counts how often the kernels of a region compute the elements of each value, on average.
class Repeats {
 public:
  // `is_apart` returns true for values that kernels always load from memory and never compute again.
  Repeats(const KernelContext& context, std::function<bool(ir::ValueId)> is_apart)
      : context_(context), is_apart_(std::move(is_apart)) {}

  void clear() { times_.clear(); }
  void add(const KernelExprs& kernel);
  // The largest count of any costly value; 0 if there is no costly value.
  double most() const;
  // Returns the values that should be stored once and then loaded by other kernels, so that no costly value is computed
  // more than kMostRepeats times. These are the last values that many kernels compute from the costly values. After
  // storing them, other values may still be computed too often.
  std::vector<ir::ValueId> to_hand_over(const std::vector<std::vector<ir::NodeId>>& users) const;

 private:
  bool is_candidate(ir::ValueId value) const;

  const KernelContext& context_;
  std::function<bool(ir::ValueId)> is_apart_;
  std::vector<double> times_;  // by value
};

}  // namespace heddle::schedule
