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
// mask enables the first lanes of a row, from `c` = 0 on; the bound of the mask is their number. The bound must be
// known before the loop.
class Bounds {
 public:
  explicit Bounds(const State& state) : state_(state) {}

  // Returns the name of a mask's bound in the code before the loop, or nullopt if the bound is not known there.
  std::optional<std::string> name_of(Lanes& lanes, const PrefixMask& mask);
  // Returns the code for the number of the W lanes that a comparison enables. `value` is the result of the comparison
  // of an index with a bound. Returns nullopt if the number is not known, for example because the index might
  // overflow.
  std::optional<std::string> compared(Lanes& lanes, ValueId value, const Coords& coords);
  // True if all elements of a row beyond the bounds are equal. Adds the masks that guard these elements to the
  // bounds.
  bool is_alike_behind(Lanes& lanes, ValueId value, const Coords& coords);

  bool empty() const { return texts_.empty(); }
  // The text of the loop's argument before its body: "bounds_of(bound0), ", or "" if there are no bounds.
  std::string argument() const;

 private:
  std::string declare(Writer& row, const std::string& bound);

  const State& state_;
  std::vector<std::string> texts_;
  std::set<ValueId> alike_;  // values known to be equal beyond the bounds, so that each is analysed once
};

}  // namespace heddle::lang::cpu
