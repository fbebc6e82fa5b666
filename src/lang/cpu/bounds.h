#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lang/cpu/state.h"
#include "lang/cpu/strides.h"

namespace heddle::lang::cpu {

// The bounds of the masks in the body of a loop over vectors. The body is there twice (tile/op/two_ways.h): once for
// vectors that lie within all of the bounds, where the masks fold away.
class Bounds {
 public:
  explicit Bounds(const State& state) : state_(state) {}

  // How many of `lanes` a mask leaves; nothing where it is more than one bound of an index that is known outside of the
  // loop, but for `c`.
  std::optional<std::string> count(const PrefixMask& mask, const std::string& lanes);
  // A comparison of such an index with a bound, where the index has no sum that could overflow.
  std::optional<std::string> comparison(ValueId value, const Coords& coords);
  // `inner`, or both forms of it.
  Lines body(const Lines& inner) const;

  bool twice = false;  // else no bound is one

 private:
  std::optional<std::string> outside(ValueId index, const Coords& coords) const;

  const State& state_;
  std::vector<std::string> bounds_;  // how many lanes each leaves
};

}  // namespace heddle::lang::cpu
