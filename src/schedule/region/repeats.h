#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "schedule/region/exprs/kernel_exprs.h"

namespace heddle::schedule {

constexpr double kMostRepeats = 4;  // computations of a costly value's elements in all kernels of a group

// Counts how often the kernels of a region compute each element of its values.
class Repeats {
 public:
  // `is_apart`: whether kernels that read a value never make it themselves.
  Repeats(const KernelContext& context, std::function<bool(ir::ValueId)> is_apart)
      : context_(context), is_apart_(std::move(is_apart)) {}

  void clear() { times_.clear(); }
  void add(const KernelExprs& kernel);
  // The largest count of any costly value; 0 if there is none.
  double most() const;
  // The values that kernels should hand over so that costly values are computed at most kMostRepeats times: the last
  // values that many kernels compute from them. Other values may still be repeated after that.
  std::vector<ir::ValueId> to_hand_over(const std::vector<std::vector<ir::NodeId>>& users) const;

 private:
  bool is_candidate(ir::ValueId value) const;

  const KernelContext& context_;
  std::function<bool(ir::ValueId)> is_apart_;
  std::vector<double> times_;  // by value
};

}  // namespace heddle::schedule
