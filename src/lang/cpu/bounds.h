#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lang/cpu/state.h"
#include "lang/cpu/strides.h"

namespace heddle::lang::cpu {

class Lanes;

// The bounds of the masks in a loop over vectors, whose body is compiled in several forms (tile/op/bounded_lanes.h). A
// bound is the number of lanes of a row, from `c` = 0 on, that a mask enables. It must be known before the loop.
class Bounds {
 public:
  explicit Bounds(const State& state) : state_(state) {}

  // The name of a bound in the text before the loop; nullopt if it is not known there.
  std::optional<std::string> name_of(Lanes& lanes, const PrefixMask& mask);
  // The number of the W lanes that a comparison with a bound enables; nullopt if that is not known, as when its index
  // might overflow.
  std::optional<std::string> compared(Lanes& lanes, ValueId value, const Coords& coords);
  // True if all elements of a row beyond the bounds are equal. The masks that guard them become bounds.
  bool is_alike_behind(Lanes& lanes, ValueId value, const Coords& coords);

  bool empty() const { return texts_.empty(); }
  // The argument of the loop before its body: "bounds_of(bound0), ", or "".
  std::string argument() const;

 private:
  std::string declare(Writer& row, const std::string& bound);

  const State& state_;
  std::vector<std::string> texts_;
  std::set<ValueId> alike_;  // each is analysed once, however many paths lead to it
};

}  // namespace heddle::lang::cpu
