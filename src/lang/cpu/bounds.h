#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lang/cpu/state.h"
#include "lang/cpu/strides.h"

namespace heddle::lang::cpu {

class Lanes;

// The bounds of the masks in the body of a loop over vectors, which is there in several forms
// (tile/op/bounded_lanes.h). A bound is how many lanes of a row, from `c` = 0 on, a mask leaves: a number that is known
// outside of the loop.
class Bounds {
 public:
  explicit Bounds(const State& state) : state_(state) {}

  // A bound's name in the text before the loop; nothing where it is not known there.
  std::optional<std::string> name_of(Lanes& lanes, const PrefixMask& mask);
  // How many of W lanes a comparison with a bound leaves, as far as its index cannot overflow.
  std::optional<std::string> compared(Lanes& lanes, ValueId value, const Coords& coords);
  // Whether all elements of a row behind the bounds are the same; the masks that guard them become bounds.
  bool is_alike_behind(Lanes& lanes, ValueId value, const Coords& coords);

  bool empty() const { return texts_.empty(); }
  // What a loop over the vectors takes before its body: "bounds_of(bound0), ", or nothing.
  std::string argument() const;

 private:
  std::string declare(Lines& row, const std::string& bound);

  const State& state_;
  std::vector<std::string> texts_;
  std::set<ValueId> alike_;  // each is looked at once, however many ways lead to it
};

}  // namespace heddle::lang::cpu
