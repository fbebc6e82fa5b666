#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lang/cpu/state.h"
#include "lang/cpu/strides.h"

namespace heddle::lang::cpu {

// The bounds of the masks in the body of a loop over vectors, which is there in several forms
// (tile/op/bounded_lanes.h). A bound is how many lanes of a row, from `c` = 0 on, a mask leaves: a number that is known
// outside of the loop.
class Bounds {
 public:
  // A name for a bound; `row` is the text before the loop.
  std::string name(Lines& row, const std::string& bound);
  bool empty() const { return texts_.empty(); }

  // What a loop along an extent takes before its body.
  std::string arguments(int64_t extent) const;

 private:
  std::vector<std::string> texts_;
};

// Whether an index is a counted one and constants: nothing in it can overflow.
bool is_counted(const State& state, ValueId index);

}  // namespace heddle::lang::cpu
