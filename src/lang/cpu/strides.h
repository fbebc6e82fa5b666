#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lang/cpu/state.h"

namespace heddle::lang::cpu {

// The difference of a value from one lane to the next, in bytes for pointers: 0 if all lanes have the same value,
// nullopt if it is not known. At most one of the coordinates may count lanes. Signed index arithmetic is assumed not to
// overflow within a tile.
std::optional<int64_t> lane_stride(const State& state, ValueId value, const Coords& coords);

// A mask that is set for a prefix of the lanes: where all of `uniform` (values that are equal in all lanes) hold, and
// lane l of element c has l < limit - index(c) (<= if inclusive) for each of `bounds`.
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

// The number of elements, as text, by which pointers advance per iteration of their loop. It is known if
// uniform_induction() made them `first + offset` and the offset's increment is defined before the loop's body.
std::optional<std::string> step_of(const State& state, ValueId pointers);

// True if an op only rearranges elements: its result is its operand's element at operand_coords().
bool is_shape_op(OpCode code);

// The coordinates of lane 0 alone; the coordinates with index 0 in place of the lanes.
Coords first_lane(Coords coords);
Coords without_lanes(Coords coords);
bool has_lanes(const Coords& coords);
// A text that is equal for equal coordinates.
std::string key_of(const Coords& coords);
// True if coordinates are known only within the loop over vectors.
bool is_inner(const Coords& coords);

}  // namespace heddle::lang::cpu
