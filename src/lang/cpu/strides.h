#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lang/cpu/state.h"

namespace heddle::lang::cpu {

// How a value changes from one lane to the next, for coordinates of which at most one counts lanes: 0 for what is the
// same in all of them, nothing where that is not known. Pointers in bytes. Signed arithmetic on indices is taken not to
// overflow within a tile.
std::optional<int64_t> lane_stride(const State& state, ValueId value, const Coords& coords);

// A mask whose lanes are set up to a number of them: all of `uniform` (values that are equal in all lanes) hold, and
// lane l of element c has l < limit - index(c) for each of `bounds`.
struct PrefixMask {
  struct Uniform {
    ValueId mask;
    Coords coords;
  };
  struct Bound {
    ValueId index, limit;
    bool inclusive;
    Coords coords;
  };
  std::vector<Uniform> uniform;
  std::vector<Bound> bounds;
};
std::optional<PrefixMask> prefix_mask(const State& state, ValueId mask, const Coords& coords);

// By how many elements pointers move from one iteration of their loop to the next, as text: where uniform_induction()
// made them `first + offset`, and the offset grows by what is known before the loop's body.
std::optional<std::string> step_of(const State& state, ValueId pointers);

// Whether an op gives the elements of its operand, at operand_coords().
bool is_shape_op(OpCode code);

// The same coordinates for lane 0 alone; and with index 0 in place of the lanes.
Coords first_lane(Coords coords);
Coords without_lanes(Coords coords);
bool has_lanes(const Coords& coords);
// One text for equal coordinates.
std::string key_of(const Coords& coords);
// Whether it is known within the loop over vectors only.
bool is_inner(const Coords& coords);

}  // namespace heddle::lang::cpu
