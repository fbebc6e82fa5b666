#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lang/cpu/state.h"
#include "lang/cpu/strides.h"

namespace heddle::lang::cpu {

class Lanes;

// The bounds of masks in a loop over vectors. The loop body is compiled in several forms (tile/op/bounded_lanes.h). A
// mask enables the first lanes of a row, starting at `c` = 0. The bound of the mask is the number of enabled lanes. It
// must be known before the loop.
class Bounds {
 public:
  explicit Bounds(const State& state) : state_(state) {}

  // Returns the name of a mask's bound in the code before the loop, or nullopt if the bound is not known there.
  std::optional<std::string> name_of(Lanes& lanes, const PrefixMask& mask);
  // `value` is the result of a comparison of an index with a bound. Returns code that computes for how many of the W
  // lanes the comparison is true. Returns nullopt if this number is not known, for example because the index might
  // overflow.
  std::optional<std::string> compared(Lanes& lanes, ValueId value, const Coords& coords);
  // True if all elements of a row beyond the bounds are equal. Adds the bounds of the masks that guard these elements.
  bool is_alike_behind(Lanes& lanes, ValueId value, const Coords& coords);

  bool empty() const { return texts_.empty(); }
  // The text of the loop's argument that precedes its body: "bounds_of(bound0), ", or "" if there are no bounds.
  std::string argument() const;

 private:
  std::string declare(Writer& row, const std::string& bound);

  const State& state_;
  std::vector<std::string> texts_;
  std::set<ValueId> alike_;  // values known to be equal beyond the bounds, so that each is analysed once
};

}  // namespace heddle::lang::cpu
